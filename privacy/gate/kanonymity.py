"""k-anonymity gate: batches of (text, contributor) in, (text, sample count) out."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.special import betainc

from privacy.accounting.cost import Unit
from privacy.accounting.events import ComposedCappedGateEvent, KAnonymityGateEvent
from privacy.accounting.gate import RATES, frontier
from privacy.gate.counting import CountingGate
from privacy.gate.hashing import COIN_RESOLUTION
from privacy.gate.normalizers import Normalizer
from privacy.gate.reading import COUNTS, check_unit, pairs, sampled_counts
from privacy.gate.threshold import ThresholdGate
from privacy.mechanisms.randomness import RandomSource

__all__ = ["KAnonymityGate", "ThresholdGate"]


@dataclass(frozen=True, slots=True)
class KAnonymityGate(CountingGate):
    r"""Sample contributions by a secret coin, count them, release a text iff its sample count reaches k.

    Unit `record`: every record has a coin of its own. Unit `contributor`: a contributor counts once
    for a text and keeps at most `texts_per_contributor` texts, drawn at random among their own records before
    anything is counted; every kept (contributor, text) has a coin.

    Parameters
    ----------
    k : int
        Smallest count in the SAMPLE that is released, >= 2.
    sampling_rate : float
        Probability of a coin, rounded down to a multiple of 2**-32; `exact_sampling_rate` is what happens
        and what is charged.
    unit : {"record", "contributor"}
        Whose presence is hidden.
    texts_per_contributor : int, optional
        Cap m, >= 1; needed for the unit `contributor` and refused for `record`.
    normalizer : Normalizer
        Rule fixed beforehand under which texts are equal. Texts that are empty after it are dropped.

    References
    ----------
    .. [1] Li, Qardaji, Su, "On sampling, anonymization, and differential privacy: or, k-anonymization
       meets differential privacy", ASIACCS 2012, Theorem 5.
    """

    k: int
    sampling_rate: float
    unit: Unit = "record"
    texts_per_contributor: int | None = None
    normalizer: Normalizer = Normalizer.L1
    count_column: ClassVar[Literal["sample_count"]] = "sample_count"

    def __post_init__(self) -> None:
        object.__setattr__(self, "normalizer", Normalizer(self.normalizer))
        if self.k < 2:
            raise ValueError(f"k must be >= 2, got {self.k}: with less, what one person said comes out")
        if not 1 / COIN_RESOLUTION <= self.sampling_rate < 1:
            raise ValueError(f"sampling_rate must be within [2**-32, 1), got {self.sampling_rate}")
        check_unit(self.unit, self.texts_per_contributor)

    @property
    def exact_sampling_rate(self) -> float:
        return self._coin_threshold / COIN_RESOLUTION

    def event(self, epsilon: float) -> KAnonymityGateEvent:
        # Every kept text of a contributor has a coin of its own, the one of its record.
        several = (self.texts_per_contributor or 1) > 1
        return (ComposedCappedGateEvent if several else KAnonymityGateEvent)(
            k=self.k,
            sampling_rate=self.exact_sampling_rate,
            epsilon=epsilon,
            unit=self.unit,
            texts_per_contributor=self.texts_per_contributor or 1,
            normalizer=self.normalizer.value,
        )

    def chances(
        self, counts: NDArray[np.int64], *, mean_weight: float | NDArray[np.float64] = 1.0
    ) -> NDArray[np.float64]:
        """Return the chance that a sample of texts said `counts` times has `k` or more of them, shape (n,)."""
        enough = counts >= self.k
        chances = np.zeros(len(counts))
        chances[enough] = betainc(self.k, counts[enough] - self.k + 1, self.exact_sampling_rate)
        return chances

    @classmethod
    def at_price(
        cls, epsilon: float, delta: float, unit: Unit = "record", texts_per_contributor: int | None = None
    ) -> Sequence[Self]:
        cap = texts_per_contributor or 1
        # The product of several texts takes long to plan with.
        choices = frontier(epsilon, delta, texts_per_contributor=cap, rates=RATES if cap == 1 else RATES[4::5])
        return [cls(choice.k, choice.sampling_rate, unit, texts_per_contributor) for choice in choices]

    def described(self) -> str:
        return f"k = {self.k} on a sample of rate {self.exact_sampling_rate:.3g}"

    def conclude(self, counted: Iterable[pa.Table], *, rng: RandomSource | None = None) -> pa.Table:
        """Return what may be shown of exact counts: all of them, since none is under k; nothing is drawn here."""
        return pa.concat_tables([COUNTS.empty_table(), *counted]).sort_by("text")

    def read(self, batches: Iterable[pa.RecordBatch], *, key: bytes, first_record: int = 0) -> Iterator[pa.Table]:
        """Yield the sample of a range batch by batch: counts of texts, or pairs with their rank and coin."""
        read = sampled_counts if self.texts_per_contributor is None else pairs
        return read(batches, self.normalizer, key=key, threshold=self._coin_threshold, first_record=first_record)

    @property
    def minimum(self) -> int:
        return self.k

    def _texts_of(self, pairs: pa.Table) -> pa.Table:
        return _shown_counts(pairs)

    @property
    def _coin_threshold(self) -> int:
        return int(self.sampling_rate * COIN_RESOLUTION)


def _shown_counts(pairs: pa.Table) -> pa.Table:
    tallied = pc.value_counts(pairs["text"].combine_chunks().filter(pairs["shown"].combine_chunks()))
    return pa.table([tallied.field("values").cast(pa.large_string()), tallied.field("counts")], schema=COUNTS)
