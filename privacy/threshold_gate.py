"""The threshold gate: texts come out when their noisy number of contributions is large enough."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privacy.accounting.cost import Unit
from privacy.accounting.events import ThresholdGateEvent
from privacy.accounting.threshold import ThresholdNoise
from privacy.contributions.capping import bounded_pairs
from privacy.contributions.reading import all_counts, check_unit, pairs
from privacy.contributions.recount import frequent_texts
from privacy.contributions.spill import DEFAULT_MEMORY_BYTES
from privacy.mechanisms.randomness import RandomSource, SecureRandom
from privacy.normalizers import Normalizer
from privacy.threshold_noise import GaussianNoise, GeometricNoise

NOISES: Final = ("discrete_laplace", "truncated_geometric", "weighted_gaussian")
# One contributor weighs 2**24 steps, so Gaussian noise on whole steps is as good as continuous.
STEPS: Final = 2**24
# What the grid may change in delta; the noise is chosen for so much less than what is declared.
_GRID_SHARE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class ThresholdGate:
    r"""Count contributions exactly, add noise, release a text iff the noisy count reaches the threshold.

    With `truncated_geometric` and `discrete_laplace` noise every contribution counts 1, and a contributor's
    `texts_per_contributor` texts cost epsilon and delta each. With `weighted_gaussian` each of a contributor's j kept
    texts weighs :math:`1/\sqrt{j}`, and all of them together cost epsilon and delta once.

    Parameters
    ----------
    epsilon : float
        Privacy loss, > 0.
    delta : float
        Chance that the loss is larger, in (0, 1).
    unit : {"record", "contributor"}
        Whose presence is hidden.
    texts_per_contributor : int, optional
        Cap m, >= 1; needed for the unit `contributor` and refused for `record`.
    noise : {"discrete_laplace", "truncated_geometric", "weighted_gaussian"}, optional
        The optimal `truncated_geometric` for records and `weighted_gaussian` for contributors if left out.
    floor : int
        Smallest exact number of contributions that can come out, >= 1. It raises the threshold by floor - 1, and only
        texts that reach it get noise.
    normalizer : Normalizer
        Rule fixed beforehand under which texts are equal. Texts that are empty after it are dropped.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    .. [1] Korolova, Kenthapadi, Mishra, Ntoulas, "Releasing search queries and clicks privately", 2009.
    .. [2] Desfontaines, Voss, Gipson, Mandayam, "Differentially private partition selection", 2022, Theorem 2.
    .. [3] Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin, "Differentially private set union", 2020.
    """

    epsilon: float
    delta: float
    unit: Unit = "record"
    texts_per_contributor: int | None = None
    noise: ThresholdNoise | None = None
    floor: int = 1
    normalizer: Normalizer = Normalizer.L1

    def __post_init__(self) -> None:
        object.__setattr__(self, "normalizer", Normalizer(self.normalizer))
        check_unit(self.unit, self.texts_per_contributor)
        if self.noise is None:
            chosen = "truncated_geometric" if self.unit == "record" else "weighted_gaussian"
            object.__setattr__(self, "noise", chosen)
        if self.noise not in NOISES:
            raise ValueError(f"noise must be one of {', '.join(NOISES)}, got {self.noise!r}")
        self.event()

    def event(self) -> ThresholdGateEvent:
        """Return the accountant's event of one release: the noise and the threshold it names are used."""
        assert self.noise is not None
        weighted = self.noise == "weighted_gaussian"
        chosen = ThresholdGateEvent(
            epsilon=self.epsilon,
            delta=self.delta * (1 - _GRID_SHARE) if weighted else self.delta,
            unit=self.unit,
            texts_per_contributor=self.texts_per_contributor or 1,
            noise=self.noise,
            floor=self.floor,
        )
        if not weighted:
            return chosen
        return ThresholdGateEvent(
            epsilon=self.epsilon,
            delta=self.delta,
            unit=self.unit,
            texts_per_contributor=self.texts_per_contributor or 1,
            noise=self.noise,
            floor=self.floor,
            noise_scale=chosen.noise_scale,
            threshold=chosen.threshold,
        )

    def release(
        self,
        batches: Iterable[pa.RecordBatch],
        *,
        rng: RandomSource | None = None,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
    ) -> pa.Table:
        """Return what may be shown: columns text and noisy_count, sorted by text.

        Parameters
        ----------
        batches : iterable of pyarrow.RecordBatch
            Columns text (string) and, for the unit `contributor`, contributor (string or binary). Read once.
        rng : RandomSource, optional
            The operating system's generator if left out; anything else is a simulation.
        memory_bytes : int
            Size up to which distinct texts, or pairs, stay in memory.

        Returns
        -------
        pyarrow.Table
            noisy_count is int64, or float64 for `weighted_gaussian`, which counts a contributor of j texts as
            1 / sqrt(j) for each.

        Raises
        ------
        ValueError
            If a column is missing, a text is not UTF-8, or a record has no contributor where one is needed.
        """
        rng = SecureRandom() if rng is None else rng
        key = rng.words(4).tobytes()
        counts = frequent_texts(
            self._counts(batches, key, memory_bytes), minimum=self.floor, key=key, memory_bytes=memory_bytes
        )
        weighted = self.noise == "weighted_gaussian"
        number_type = pa.float64() if weighted else pa.int64()
        released = [pa.schema([("text", pa.large_string()), ("noisy_count", number_type)]).empty_table()]
        event = self.event()
        for share in counts:
            passed, noisy = self._noisy(share, event, rng)
            texts = share["text"].combine_chunks().filter(pa.array(passed))
            released.append(pa.table([texts, pa.array(noisy)], schema=released[0].schema))
        return pa.concat_tables(released).sort_by("text")

    def _counts(self, batches: Iterable[pa.RecordBatch], key: bytes, memory_bytes: int) -> Iterator[pa.Table]:
        if self.texts_per_contributor is None:
            for part in all_counts(batches, self.normalizer):
                weights = pc.multiply(part["sample_count"], STEPS)
                yield part.append_column("weight", weights) if self.noise == "weighted_gaussian" else part
            return
        kept = bounded_pairs(self.texts_per_contributor, key=key, memory_bytes=memory_bytes)
        # No coin decides here: every contributor counts.
        for part in pairs(batches, self.normalizer, key=key, threshold=0):
            kept.add(part)
        for share in kept.shares():
            yield _weighed(share)

    def _noisy(self, share: pa.Table, event: ThresholdGateEvent, rng: RandomSource) -> tuple[np.ndarray, np.ndarray]:
        if self.noise == "weighted_gaussian":
            weights = share["weight"].combine_chunks().to_numpy()
            threshold = math.ceil(event.threshold * STEPS)
            passed, noisy = GaussianNoise(event.noise_scale * STEPS).release(weights, threshold, rng=rng)
            return passed, noisy / STEPS
        bound = event.truncation if self.noise == "truncated_geometric" else None
        counts = share["sample_count"].combine_chunks().to_numpy()
        return GeometricNoise(event.noise_scale, bound).release(counts, math.ceil(event.threshold), rng=rng)


def _weighed(pairs: pa.Table) -> pa.Table:
    """Count and weigh the contributors of each text: a contributor of j texts has the weight 1 / sqrt(j) on each."""
    contributors = pairs["contributor"].combine_chunks().indices.to_numpy()
    texts = np.bincount(contributors)[contributors] if len(contributors) else np.empty(0)
    # Rounded down, so that nobody's weights have a norm above one.
    weights = np.floor(STEPS / np.sqrt(texts) * (1 - 2.0**-50)).astype(np.int64)
    columns = {
        "text": pairs["text"].cast(pa.large_string()),
        "sample_count": pa.array(np.ones(len(weights), dtype=np.int64)),
        "weight": pa.array(weights),
    }
    return pa.table(columns)
