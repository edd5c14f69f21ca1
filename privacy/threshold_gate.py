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
from privacy.contributions.coins import check_key
from privacy.contributions.counting import CountingGate
from privacy.contributions.reading import COUNTS, PAIRS, all_counts, check_unit, pairs
from privacy.contributions.spill import DEFAULT_MEMORY_BYTES
from privacy.mechanisms.randomness import RandomSource, SecureRandom
from privacy.normalizers import Normalizer
from privacy.threshold_noise import GaussianNoise, GeometricNoise
from privacy.wording import as_message

NOISES: Final = ("discrete_laplace", "truncated_geometric", "weighted_gaussian")
# One contributor weighs 2**24 steps, so Gaussian noise on whole steps is as good as continuous.
STEPS: Final = 2**24
WEIGHT: Final = pa.field("weight", pa.int64())
# What the grid may change in delta; the noise is chosen for so much less than what is declared.
_GRID_SHARE: Final = 1e-9
# Shares of a price add up to a little less than it, whichever way their sum is rounded.
_SHARES: Final = 1 - 1e-12


@dataclass(frozen=True, slots=True)
class ThresholdGate(CountingGate):
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
            raise ValueError(
                as_message(
                    "{name} must be one of {choices}, got {value!r}",
                    name="noise",
                    choices=", ".join(NOISES),
                    value=self.noise,
                )
            )
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
        texts = self.texts(self.read(batches, key=key), key=key, memory_bytes=memory_bytes)
        return self.conclude(self.counted(texts, key=key, memory_bytes=memory_bytes), rng=rng)

    def decide(
        self,
        parts: Iterable[pa.Table],
        *,
        key: bytes,
        rng: RandomSource | None = None,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
    ) -> pa.Table:
        """Return what may be shown of collected ranges, given in record order.

        `key` is the one they were collected under; noise comes from `rng`, the operating system's if left out.
        """
        check_key(key)
        texts = self.texts(parts, key=key, memory_bytes=memory_bytes)
        return self.conclude(ordered(self.counted(texts, key=key, memory_bytes=memory_bytes)), rng=rng)

    def conclude(self, counted: Iterable[pa.Table], *, rng: RandomSource | None = None) -> pa.Table:
        """Draw the noise of exact counts and return what may be shown; each call is a release of its own.

        Noise is drawn in the order of the rows, so `ordered` counts give the same for the same `rng` however they
        were counted.
        """
        rng = SecureRandom() if rng is None else rng
        weighted = self.noise == "weighted_gaussian"
        number_type = pa.float64() if weighted else pa.int64()
        released = [pa.schema([("text", pa.large_string()), ("noisy_count", number_type)]).empty_table()]
        event = self.event()
        for share in counted:
            passed, noisy = self._noisy(share, event, rng)
            texts = share["text"].combine_chunks().filter(pa.array(passed))
            released.append(pa.table([texts, pa.array(noisy)], schema=released[0].schema))
        return pa.concat_tables(released).sort_by("text")

    def read(self, batches: Iterable[pa.RecordBatch], *, key: bytes, first_record: int = 0) -> Iterator[pa.Table]:
        """Yield a range batch by batch: counts of texts, or pairs with their rank; no coin decides here."""
        if self.texts_per_contributor is not None:
            yield from pairs(batches, self.normalizer, key=key, threshold=0, first_record=first_record)
            return
        for part in all_counts(batches, self.normalizer):
            weights = pc.multiply(part["sample_count"], STEPS)
            yield part.append_column("weight", weights) if self.noise == "weighted_gaussian" else part

    @property
    def minimum(self) -> int:
        """Smallest exact count that may come out."""
        return self.floor

    @property
    def counts_schema(self) -> pa.Schema:
        """Text and count, and the weight where contributors have one."""
        weighted = self.noise == "weighted_gaussian" or self.texts_per_contributor is not None
        return COUNTS.append(WEIGHT) if weighted else COUNTS

    @property
    def _digest_schema(self) -> pa.Schema:
        return self.counts_schema if self.texts_per_contributor is None else PAIRS

    def _texts_of(self, pairs: pa.Table) -> pa.Table:
        return _weighed(pairs)

    def _noisy(self, share: pa.Table, event: ThresholdGateEvent, rng: RandomSource) -> tuple[np.ndarray, np.ndarray]:
        if self.noise == "weighted_gaussian":
            weights = share["weight"].combine_chunks().to_numpy()
            threshold = math.ceil(event.threshold * STEPS)
            passed, noisy = GaussianNoise(event.noise_scale * STEPS).release(weights, threshold, rng=rng)
            return passed, noisy / STEPS
        bound = event.truncation if self.noise == "truncated_geometric" else None
        counts = share["sample_count"].combine_chunks().to_numpy()
        return GeometricNoise(event.noise_scale, bound).release(counts, math.ceil(event.threshold), rng=rng)


def threshold_gate_at(
    epsilon: float,
    delta: float,
    unit: Unit = "record",
    texts_per_contributor: int | None = None,
    *,
    floor: int = 1,
    normalizer: Normalizer = Normalizer.L1,
) -> ThresholdGate:
    r"""Return the threshold gate of this whole price with the noise that fewest people have to speak up against.

    Geometric noise charges each of a contributor's m texts by itself and counts them whole; Gaussian noise charges all
    of them once, and somebody who gave m counts :math:`1/\sqrt{m}` for each. Compared is how many people with m texts
    a text needs, by public numbers alone: for few texts a person that is the geometric noise.

    Parameters
    ----------
    epsilon, delta : float
        What the gate may cost one record, or one contributor with all their texts.
    unit, texts_per_contributor, floor, normalizer
        As for `ThresholdGate`.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """
    whole = ThresholdGate(epsilon, delta, unit, texts_per_contributor, floor=floor, normalizer=normalizer)
    if unit == "record":
        return whole
    texts = texts_per_contributor or 1
    share = _SHARES / texts
    counted = ThresholdGate(
        epsilon * share, delta * share, unit, texts_per_contributor, "truncated_geometric", floor, normalizer
    )
    return counted if counted.event().threshold <= whole.event().threshold * math.sqrt(texts) else whole


def ordered(counted: Iterable[pa.Table]) -> list[pa.Table]:
    """Return counts as one table by text, or nothing where there are none."""
    tables = list(counted)
    return [pa.concat_tables(tables).sort_by("text")] if tables else []


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
