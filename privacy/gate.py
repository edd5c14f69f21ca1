"""The gates: batches of (text, contributor) in, (text, sample count) out, nothing rare."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from privacy.accounting.cost import Unit
from privacy.accounting.events import KAnonymityGateEvent
from privacy.contributions.coins import COIN_RESOLUTION, check_key
from privacy.contributions.counting import CountingGate
from privacy.contributions.reading import COUNTS, PAIRS, check_unit, pairs, sampled_counts
from privacy.contributions.spill import DEFAULT_MEMORY_BYTES
from privacy.normalizers import Normalizer
from privacy.threshold_gate import ThresholdGate
from privacy.wording import as_message

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

    Raises
    ------
    ValueError
        If a parameter is out of range.

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "normalizer", Normalizer(self.normalizer))
        if self.k < 2:
            raise ValueError(as_message("k must be >= 2, got {k}: with less, what one person said comes out", k=self.k))
        if not 1 / COIN_RESOLUTION <= self.sampling_rate < 1:
            raise ValueError(
                as_message(
                    "sampling_rate must be within [2**-32, 1), got {sampling_rate}", sampling_rate=self.sampling_rate
                )
            )
        check_unit(self.unit, self.texts_per_contributor)

    @property
    def exact_sampling_rate(self) -> float:
        """The probability of a coin, exact as a float64."""
        return self._coin_threshold / COIN_RESOLUTION

    def event(self, epsilon: float) -> KAnonymityGateEvent:
        """Return the accountant's event of one release, its delta to be computed at `epsilon`."""
        return KAnonymityGateEvent(
            k=self.k,
            sampling_rate=self.exact_sampling_rate,
            epsilon=epsilon,
            unit=self.unit,
            texts_per_contributor=self.texts_per_contributor or 1,
            normalizer=self.normalizer.value,
        )

    def release(
        self, batches: Iterable[pa.RecordBatch], *, key: bytes, memory_bytes: int = DEFAULT_MEMORY_BYTES
    ) -> pa.Table:
        """Return what may be shown: columns text and sample_count, sorted by text.

        Parameters
        ----------
        batches : iterable of pyarrow.RecordBatch
            Columns text (string) and, for the unit `contributor`, contributor (string or binary). Read once.
            Where one batch ends and the next begins does not matter.
        key : bytes
            Secret, at least 16 random bytes, drawn for this run alone and never stored with the output.
        memory_bytes : int
            Size up to which the sample's distinct texts, or pairs, stay in memory; beyond it they go to a
            temporary file without a name, and a sketch picks the candidates that are counted exactly. The result is
            the same.

        Raises
        ------
        ValueError
            If the key is short, a column is missing, a text is not UTF-8, or a record has no contributor where one
            is needed.
        """
        check_key(key)
        texts = self.texts(self.read(batches, key=key), key=key, memory_bytes=memory_bytes)
        return self.conclude(self.counted(texts, key=key, memory_bytes=memory_bytes))

    def decide(self, parts: Iterable[pa.Table], *, key: bytes, memory_bytes: int = DEFAULT_MEMORY_BYTES) -> pa.Table:
        """Return what may be shown of collected ranges, given in record order."""
        check_key(key)
        texts = self.texts(parts, key=key, memory_bytes=memory_bytes)
        return self.conclude(self.counted(texts, key=key, memory_bytes=memory_bytes))

    def conclude(self, counted: Iterable[pa.Table]) -> pa.Table:
        """Return what may be shown of exact counts: all of them, since none is under k."""
        return pa.concat_tables([COUNTS.empty_table(), *counted]).sort_by("text")

    def read(self, batches: Iterable[pa.RecordBatch], *, key: bytes, first_record: int = 0) -> Iterator[pa.Table]:
        """Yield the sample of a range batch by batch: counts of texts, or pairs with their rank and coin."""
        read = sampled_counts if self.texts_per_contributor is None else pairs
        return read(batches, self.normalizer, key=key, threshold=self._coin_threshold, first_record=first_record)

    @property
    def minimum(self) -> int:
        """Smallest count that is released."""
        return self.k

    @property
    def counts_schema(self) -> pa.Schema:
        """Text and sample count."""
        return COUNTS

    @property
    def _digest_schema(self) -> pa.Schema:
        return COUNTS if self.texts_per_contributor is None else PAIRS

    def _texts_of(self, pairs: pa.Table) -> pa.Table:
        return _shown_counts(pairs)

    @property
    def _coin_threshold(self) -> int:
        return int(self.sampling_rate * COIN_RESOLUTION)


def _shown_counts(pairs: pa.Table) -> pa.Table:
    """Count the contributors of each text whose coin shows it."""
    tallied = pc.value_counts(pairs["text"].combine_chunks().filter(pairs["shown"].combine_chunks()))
    return pa.table([tallied.field("values").cast(pa.large_string()), tallied.field("counts")], schema=COUNTS)
