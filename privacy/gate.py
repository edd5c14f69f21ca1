"""The k-anonymity gate: batches of (text, contributor) in, (text, sample count) out, nothing rare."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privacy.accounting.cost import Unit
from privacy.accounting.events import KAnonymityGateEvent
from privacy.normalizers import Normalizer, normalize_texts

COIN_RESOLUTION = 2**32
MINIMUM_KEY_BYTES = 16
BLOCK_WORDS = 2**12
# Partial results are merged when they outgrow the merged ones, but not for less than this.
MERGE_ROWS = 2**20


@dataclass(frozen=True, slots=True)
class KAnonymityGate:
    r"""Sample contributions by a secret coin, count them, release a text iff its sample count reaches k.

    Unit `record`: every record has a coin of its own. Unit `contributor`: a contributor counts once
    for a text, keeps at most `texts_per_contributor` texts, drawn by the same secret key among their
    own, and every kept (contributor, text) has a coin.

    Parameters
    ----------
    k : int
        Smallest count in the SAMPLE that is released, >= 1.
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
        if self.k < 1:
            raise ValueError(f"k must be >= 1, got {self.k}")
        if not 1 / COIN_RESOLUTION <= self.sampling_rate < 1:
            raise ValueError(f"sampling_rate must be within [2**-32, 1), got {self.sampling_rate}")
        if self.unit not in ("record", "contributor"):
            raise ValueError(f"unit must be 'record' or 'contributor', got {self.unit!r}")
        if self.unit == "record" and self.texts_per_contributor is not None:
            raise ValueError("texts_per_contributor has no meaning for the unit record")
        if self.unit == "contributor" and (self.texts_per_contributor is None or self.texts_per_contributor < 1):
            raise ValueError(f"unit contributor needs texts_per_contributor >= 1, got {self.texts_per_contributor}")

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

    def release(self, batches: Iterable[pa.RecordBatch], *, key: bytes) -> pa.Table:
        """Return what may be shown: columns text and sample_count, sorted by text.

        Parameters
        ----------
        batches : iterable of pyarrow.RecordBatch
            Columns text (string) and, for the unit `contributor`, contributor (string or binary).
            Where one batch ends and the next begins does not matter.
        key : bytes
            Secret, at least 16 random bytes, drawn for this run alone and never stored with the output.

        Raises
        ------
        ValueError
            If the key is short, a column is missing, or a record has no contributor where one is needed.
        """
        return self.decide([self.collect(batches, key=key)], key=key)

    def collect(self, batches: Iterable[pa.RecordBatch], *, key: bytes, first_record: int = 0) -> pa.Table:
        """Digest one range of records; the result is as private as the records themselves.

        `first_record` is the number of records in all earlier ranges, so that ranges can be
        collected apart and in any order.
        """
        check_key(key)
        if self.unit == "contributor":
            return merged(self._pairs(batches), counted=False)
        return merged(self._sampled_counts(batches, key, first_record), counted=True)

    def decide(self, parts: Iterable[pa.Table], *, key: bytes) -> pa.Table:
        """Return what may be shown of collected ranges, given in record order."""
        check_key(key)
        counts = merged(parts, counted=self.unit == "record")
        if self.unit == "contributor":
            counts = merged([self._sampled_pairs(counts, key)], counted=True)
        passed = counts.filter(pc.greater_equal(counts["sample_count"], self.k))
        return passed.sort_by("text")

    @property
    def _coin_threshold(self) -> int:
        return int(self.sampling_rate * COIN_RESOLUTION)

    def _sampled_counts(self, batches: Iterable[pa.RecordBatch], key: bytes, first_record: int) -> Iterator[pa.Table]:
        """Yield the sample's texts with their counts, batch by batch; texts may repeat."""
        position = first_record
        for batch in batches:
            texts = text_column(batch)
            shown = coins(key, first=position, count=len(texts), threshold=self._coin_threshold)
            position += len(texts)
            # Sampling first leaves only the sample to hash and to normalise.
            tallied = pc.value_counts(texts.filter(pa.array(shown)).drop_null())
            normal = normalize_texts(tallied.field("values"), self.normalizer)
            yield pa.table({"text": normal, "sample_count": tallied.field("counts")}).filter(pc.not_equal(normal, ""))

    def _pairs(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield (text, contributor), batch by batch in record order; pairs may repeat."""
        for batch in batches:
            if "contributor" not in batch.schema.names:
                raise ValueError("batches need a column contributor")
            contributors = batch.column("contributor")
            if contributors.null_count:
                raise ValueError(f"{contributors.null_count} records have no contributor to protect")
            texts = text_column(batch).dictionary_encode()
            # Different texts can have one normal form, so these are encoded once more.
            normal = normalize_texts(texts.dictionary, self.normalizer).dictionary_encode()
            texts = pa.DictionaryArray.from_arrays(normal.indices.take(texts.indices), normal.dictionary)
            named = pc.fill_null(pc.not_equal(texts, ""), False)
            contributors = contributors.cast(pa.large_binary()).dictionary_encode()
            yield pa.table({"text": texts, "contributor": contributors}).filter(named)

    def _sampled_pairs(self, pairs: pa.Table, key: bytes) -> pa.Table:
        """Cap the texts of each contributor, flip the coins, and count the pairs that remain."""
        if self.texts_per_contributor is None or not pairs.num_rows:
            return no_rows(counted=True)
        contributors = pairs["contributor"].combine_chunks().indices.to_numpy()
        # Distinct pairs stand in order of first appearance, so each has a place of its own in the keyed
        # stream: its words are independent of everything in the data, as a hash of the pair would be.
        ranks = rank_within(contributors, secret_words(key, b"cap", first=0, count=pairs.num_rows))
        kept = ranks < self.texts_per_contributor
        kept &= coins(key, first=0, count=pairs.num_rows, threshold=self._coin_threshold)
        tallied = pc.value_counts(pairs["text"].combine_chunks().filter(pa.array(kept)))
        texts = tallied.field("values").cast(pa.large_string())
        return pa.table({"text": texts, "sample_count": tallied.field("counts")})


def check_key(key: bytes) -> None:
    """Refuse keys that could be guessed."""
    if len(key) < MINIMUM_KEY_BYTES:
        raise ValueError(f"key must have at least {MINIMUM_KEY_BYTES} bytes, got {len(key)}")


def text_column(batch: pa.RecordBatch) -> pa.Array:
    """Return the texts of a batch as large strings."""
    if "text" not in batch.schema.names:
        raise ValueError("batches need a column text")
    return batch.column("text").cast(pa.large_string())


def coins(key: bytes, *, first: int, count: int, threshold: int) -> NDArray[np.bool_]:
    """Flip the coins of `count` places from `first` on, each shown with probability threshold / 2**32."""
    words = secret_words(key, b"coin", first=first, count=count) >> np.uint64(32)
    shown: NDArray[np.bool_] = words < np.uint64(threshold)
    return shown


def secret_words(key: bytes, purpose: bytes, *, first: int, count: int) -> NDArray[np.uint64]:
    """Return 64-bit words number `first` to `first + count - 1` of a keyed pseudorandom stream.

    Word i is a function of key, purpose and i alone: SHAKE-256 of the key and the number of a block
    of words, read in counter mode.
    """
    if count == 0:
        return np.empty(0, dtype=np.uint64)
    first_block, last_block = first // BLOCK_WORDS, (first + count - 1) // BLOCK_WORDS
    header = len(key).to_bytes(4, "big") + key + len(purpose).to_bytes(4, "big") + purpose
    stream = b"".join(
        hashlib.shake_256(header + block.to_bytes(8, "big")).digest(8 * BLOCK_WORDS)
        for block in range(first_block, last_block + 1)
    )
    start = first - first_block * BLOCK_WORDS
    return np.frombuffer(stream, dtype="<u8")[start : start + count].astype(np.uint64, copy=False)


def rank_within(groups: NDArray[np.integer], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the place of each row among the rows of its group, from 0, shape (n,).

    Rows stand in order of the leading 32 bits of `keys`, equal ones in row order; groups are below 2**32.
    """
    order = np.argsort((groups.astype(np.uint64) << np.uint64(32)) | (keys >> np.uint64(32)), kind="stable")
    sorted_groups = groups[order]
    starts = np.flatnonzero(np.r_[True, sorted_groups[1:] != sorted_groups[:-1]])
    sizes = np.diff(np.r_[starts, len(groups)])
    ranks = np.empty(len(groups), dtype=np.int64)
    ranks[order] = np.arange(len(groups)) - np.repeat(starts, sizes)
    return ranks


def merged(parts: Iterable[pa.Table], *, counted: bool) -> pa.Table:
    """Merge partial tables: counts of equal texts added up, or distinct pairs in order of first appearance."""
    waiting = [no_rows(counted=counted)]
    settled, arrived = 0, 0
    for part in parts:
        waiting.append(part)
        arrived += part.num_rows
        if arrived > max(settled, MERGE_ROWS):
            waiting = [_merge(waiting, counted=counted)]
            settled, arrived = waiting[0].num_rows, 0
    return _merge(waiting, counted=counted)


def no_rows(*, counted: bool) -> pa.Table:
    """Return an empty table of counts or of pairs."""
    if counted:
        return pa.schema([("text", pa.large_string()), ("sample_count", pa.int64())]).empty_table()
    encoded = [pa.dictionary(pa.int32(), values) for values in (pa.large_string(), pa.large_binary())]
    return pa.schema(list(zip(("text", "contributor"), encoded, strict=True))).empty_table()


def _merge(tables: list[pa.Table], *, counted: bool) -> pa.Table:
    table = pa.concat_tables(tables)
    if not counted:
        return _distinct_pairs(table.unify_dictionaries().combine_chunks())
    summed = table.group_by("text", use_threads=False).aggregate([("sample_count", "sum")])
    return summed.rename_columns({"text": "text", "sample_count_sum": "sample_count"})


def _distinct_pairs(table: pa.Table) -> pa.Table:
    """Return each (text, contributor) once, in order of first appearance, both columns dictionary-encoded."""
    if not table.num_rows:
        return no_rows(counted=False)
    texts, contributors = (table[name].combine_chunks() for name in ("text", "contributor"))
    # One integer a pair: grouping by two strings is a hundred times slower.
    width = len(contributors.dictionary)
    codes = texts.indices.to_numpy().astype(np.int64) * width + contributors.indices.to_numpy()
    rows = pc.unique(pa.array(codes)).to_numpy()
    columns = [
        pa.DictionaryArray.from_arrays(pa.array((rows // width).astype(np.int32)), texts.dictionary),
        pa.DictionaryArray.from_arrays(pa.array((rows % width).astype(np.int32)), contributors.dictionary),
    ]
    return pa.table(columns, names=["text", "contributor"])
