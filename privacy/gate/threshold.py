"""Threshold gate: release texts whose noisy number of contributions is large enough."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import partial
from typing import ClassVar, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.special import ndtr

from privacy.accounting.cost import Unit
from privacy.accounting.events import ThresholdGateEvent
from privacy.accounting.gate_events import ThresholdNoise
from privacy.arrays import CountArray
from privacy.gate.counting import CountingGate
from privacy.gate.normalizers import Normalizer
from privacy.gate.reading import COUNTS, all_counts, check_unit, pairs
from privacy.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from privacy.mechanisms.randomness import RandomSource, SecureRandom

WORD_BITS = 64


@dataclass(frozen=True, slots=True)
class GeometricNoise:
    r"""Integer noise with :math:`P(z) \propto e^{-|z|/s}`, on all integers or on [-bound, bound].

    Parameters
    ----------
    scale : float
        The scale s, > 0, taken as the exact rational it stores.
    bound : int, optional
        Largest absolute value, >= 0; without it the noise is discrete Laplace.
    """

    scale: float
    bound: int | None = None

    def release(self, counts: CountArray, threshold: int, *, rng: RandomSource) -> tuple[NDArray[np.bool_], CountArray]:
        """Return which counts reach `threshold` with their noise, shape (n,), and those noisy counts alone.

        A count under the threshold first passes a coin with the exact chance that its noise lifts it; only then
        is noise drawn for it, given that it lifts. The outcome has the law of noise for every count.
        """
        passed = np.zeros(len(counts), dtype=np.bool_)
        noisy = np.zeros(len(counts), dtype=np.int64)
        missing = threshold - counts
        high = np.flatnonzero(missing <= 0)
        noisy[high] = counts[high] + self._draw(len(high), rng)
        passed[high] = noisy[high] >= threshold
        for distance in np.unique(missing[missing > 0]).tolist():
            low = np.flatnonzero(missing == distance)
            lifted = low[exact_coins(partial(self._tail, distance), len(low), rng)]
            noisy[lifted] = threshold + self._excess(len(lifted), distance, rng)
            passed[lifted] = True
        return passed, noisy[passed]

    def _tail(self, distance: int, bits: int) -> tuple[int, int]:
        if self.bound is not None and distance > self.bound:
            return 0, 0
        with localcontext() as context:
            context.prec = bits // 3 + 40
            q = (-1 / Decimal(self.scale)).exp()
            beyond = Decimal(0) if self.bound is None else q ** (self.bound + 1)
            chance = (q**distance - beyond) / (1 + q - 2 * beyond)
            # Forty digits to spare: the rounding of all steps is far below one unit.
            scaled = int(chance * 2**bits)
        return max(0, scaled - 1), scaled + 2

    def _draw(self, count: int, rng: RandomSource) -> CountArray:
        sampler = DiscreteLaplace(self.scale)
        noise = sampler.release(np.zeros(count, dtype=np.int64), rng=rng)
        while self.bound is not None and (outside := np.flatnonzero(np.abs(noise) > self.bound)).size:
            noise[outside] = sampler.release(np.zeros(outside.size, dtype=np.int64), rng=rng)
        return noise

    def _excess(self, count: int, distance: int, rng: RandomSource) -> CountArray:
        sampler = DiscreteLaplace(self.scale)
        excess = np.full(count, -1, dtype=np.int64)
        while (open_ := np.flatnonzero(excess < 0)).size:
            drawn = sampler.release(np.zeros(open_.size, dtype=np.int64), rng=rng) - 1
            if self.bound is not None:
                drawn[drawn + distance > self.bound] = -1
            excess[open_] = drawn
        return excess


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Discrete Gaussian noise on integers, so fine a grid that it stands for the continuous one.

    Parameters
    ----------
    scale : float
        Sigma in grid steps, >= 2**20: rounding a continuous Gaussian to such a grid differs from this noise by less
        than 1e-12 in every ratio of probabilities.
    """

    scale: float

    def __post_init__(self) -> None:
        if not self.scale >= 2**20:
            raise ValueError(f"scale must be >= 2**20 grid steps, got {self.scale}")

    def release(self, counts: CountArray, threshold: int, *, rng: RandomSource) -> tuple[NDArray[np.bool_], CountArray]:
        noisy = DiscreteGaussian(self.scale).release(counts, rng=rng)
        passed = noisy >= threshold
        return passed, noisy[passed]


def exact_coins(chance: Callable[[int], tuple[int, int]], count: int, rng: RandomSource) -> NDArray[np.bool_]:
    """Flip coins whose chance is known to any number of bits.

    Parameters
    ----------
    chance : callable
        Takes a number of bits b and returns integers low <= 2**b times the chance <= high.
    count : int
        Number of coins.
    rng : RandomSource
        Source of the words.

    Returns
    -------
    ndarray of bool, shape (count,)
        Exact: a coin whose first 64 bits do not settle it is given more.
    """
    low, high = chance(WORD_BITS)
    words = rng.words(count)
    shown: NDArray[np.bool_] = words < np.uint64(min(low, 2**WORD_BITS - 1))
    for row in np.flatnonzero(~shown & (words <= np.uint64(min(high, 2**WORD_BITS - 1)))).tolist():
        shown[row] = _settle(chance, int(words[row]), rng)
    return shown


def _settle(chance: Callable[[int], tuple[int, int]], word: int, rng: RandomSource) -> bool:
    bits = WORD_BITS
    while True:
        low, high = chance(bits)
        # The uniform number lies in [word, word + 1) / 2**bits.
        if word + 1 <= low:
            return True
        if word >= high:
            return False
        word = word << WORD_BITS | rng.bits(WORD_BITS)
        bits += WORD_BITS


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
    count_column: ClassVar[Literal["noisy_count"]] = "noisy_count"

    def __post_init__(self) -> None:
        object.__setattr__(self, "normalizer", Normalizer(self.normalizer))
        check_unit(self.unit, self.texts_per_contributor)
        if self.noise is None:
            chosen = "truncated_geometric" if self.unit == "record" else "weighted_gaussian"
            object.__setattr__(self, "noise", chosen)
        if self.noise not in NOISES:
            raise ValueError(f"{'noise'} must be one of {', '.join(NOISES)}, got {self.noise!r}")
        self.event()

    def event(self, epsilon: float | None = None) -> ThresholdGateEvent:
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

    def chances(
        self, counts: NDArray[np.int64], *, mean_weight: float | NDArray[np.float64] = 1.0
    ) -> NDArray[np.float64]:
        """Return the chance that noise leaves texts said `counts` times over the threshold, shape (n,).

        The weighted Gaussian gate is taken with the mean weight of a contribution for every one of them.
        """
        event = self.event()
        if event.noise == "weighted_gaussian":
            chances = np.asarray(ndtr((mean_weight * counts - event.threshold) / event.noise_scale), dtype=np.float64)
        else:
            missing = math.ceil(event.threshold) - counts
            q = math.exp(-1 / event.noise_scale)
            beyond = q ** (event.truncation + 1) if event.noise == "truncated_geometric" else 0.0
            # The masses q^|z| from |missing| outwards, and from it inwards by symmetry.
            outward = np.maximum(q ** np.maximum(np.abs(missing), 1 - missing) - beyond, 0.0) / (1 + q - 2 * beyond)
            chances = np.where(missing >= 1, outward, 1 - outward)
        return np.where(counts >= self.floor, chances, 0.0)

    @classmethod
    def at_price(
        cls, epsilon: float, delta: float, unit: Unit = "record", texts_per_contributor: int | None = None
    ) -> Sequence["ThresholdGate"]:
        """Return the one with the noise that fewest people have to speak up against."""
        return [threshold_gate_at(epsilon, delta, unit, texts_per_contributor)]

    def described(self) -> str:
        return f"threshold {self.event().threshold:.3g}, {self.noise} noise"

    def conclude(self, counted: Iterable[pa.Table], *, rng: RandomSource | None = None) -> pa.Table:
        """Draw the noise of exact counts and return what may be shown; each call is a release of its own.

        Counts are int64, or float64 for `weighted_gaussian`, which counts a contributor of j texts as 1 / sqrt(j) each.
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
        return self.floor

    @property
    def counts_schema(self) -> pa.Schema:
        weighted = self.noise == "weighted_gaussian" or self.texts_per_contributor is not None
        return COUNTS.append(WEIGHT) if weighted else COUNTS

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


def _weighed(pairs: pa.Table) -> pa.Table:
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
