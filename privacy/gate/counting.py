"""Exact counts of contributions by text, in stages that many workers may share."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pkgutil import resolve_name
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privacy.accounting.cost import Unit
from privacy.accounting.events import GateEvent
from privacy.gate.capping import bounded_pairs, capping
from privacy.gate.hashing import check_key, hash_texts, share_key
from privacy.gate.normalizers import Normalizer
from privacy.gate.reading import COUNTS, PAIRS
from privacy.gate.recount import frequent_texts, summing
from privacy.gate.spill import DEFAULT_MEMORY_BYTES, Merging
from privacy.mechanisms.randomness import RandomSource, SecureRandom

MERGED_AT_LEAST: Final = DEFAULT_MEMORY_BYTES // 16


class CountingGate(ABC):
    """The mechanism of a gate, whichever it is: engines, plans and simulations know this alone.

    It is a frozen dataclass of plain values, so that executors can be told it. Texts are read, contributors capped, and
    counted exactly, by one process or by many; then it draws what passes (`conclude`), at the price of its `event`.

    In stages: `collect` digests a range of records; `shares_of` says by the keyed hash of the contributor, or of the
    text once there are no contributors any more, where each row goes; `texts` caps what came together of a share of the
    contributors; `counted` adds up a share of the texts. How many ranges, shares and workers there are changes no
    count, because every coin and rank belongs to a place in the records, and all rows of a contributor, and of a text,
    meet in one share.

    Attributes
    ----------
    unit : {"record", "contributor"}
        Whose presence is hidden.
    texts_per_contributor : int or None
        Cap on the texts of one contributor; None where records are protected one by one.
    normalizer : Normalizer
        Rule fixed beforehand under which texts are equal.
    count_column : str
        What is told beside a text that passed: its exact count in a secret sample, at least 2, or a noisy one.
    """

    __slots__ = ()
    unit: Unit
    texts_per_contributor: int | None
    normalizer: Normalizer
    count_column: ClassVar[Literal["sample_count", "noisy_count"]]

    @abstractmethod
    def event(self, epsilon: float) -> GateEvent:
        """Return the accountant's event of one release; a gate without an epsilon has its delta computed at this."""

    @abstractmethod
    def chances(
        self, counts: NDArray[np.int64], *, mean_weight: float | NDArray[np.float64] = 1.0
    ) -> NDArray[np.float64]:
        """Return the chance to pass of texts said `counts` times, shape (n,).

        `mean_weight` is that of one contribution, for a gate that weighs those of a contributor by their number.
        """

    @abstractmethod
    def conclude(self, counted: Iterable[pa.Table], *, rng: RandomSource | None = None) -> pa.Table:
        """Return what may be shown of exact counts, by text: text and `count_column`; each call is one release.

        What is drawn here comes from `rng`, the operating system's if left out; anything else is a simulation.
        """

    @classmethod
    def at_price(
        cls, epsilon: float, delta: float, unit: Unit = "record", texts_per_contributor: int | None = None
    ) -> Sequence[Self]:
        """Return the gates at a price that no other of the kind beats; none where it is planned at no price."""
        return ()

    @abstractmethod
    def described(self) -> str: ...

    @property
    @abstractmethod
    def minimum(self) -> int: ...

    @property
    def counts_schema(self) -> pa.Schema:
        return COUNTS

    @property
    def _digest_schema(self) -> pa.Schema:
        return self.counts_schema if self.texts_per_contributor is None else PAIRS

    @abstractmethod
    def read(self, batches: Iterable[pa.RecordBatch], *, key: bytes, first_record: int = 0) -> Iterator[pa.Table]:
        """Yield digests batch by batch: text rows, or pairs of text and contributor where these are capped."""

    @abstractmethod
    def _texts_of(self, pairs: pa.Table) -> pa.Table: ...

    def release(
        self,
        batches: Iterable[pa.RecordBatch],
        *,
        key: bytes | None = None,
        rng: RandomSource | None = None,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
    ) -> pa.Table:
        """Return what may be shown: columns text and `count_column`, sorted by text.

        Parameters
        ----------
        batches : iterable of pyarrow.RecordBatch
            Columns text (string) and, for the unit `contributor`, contributor (string or binary). Read once.
            Where one batch ends and the next begins does not matter.
        key : bytes, optional
            Secret, at least 16 random bytes, drawn for this run alone and never stored with the output; of `rng` if
            left out.
        rng : RandomSource, optional
            The operating system's generator if left out; anything else is a simulation.
        memory_bytes : int
            Size up to which the distinct texts, or pairs, stay in memory; beyond it they go to a temporary file without
            a name, and a sketch picks the candidates that are counted exactly. The result is the same.

        Raises
        ------
        ValueError
            If the key is short, a column is missing, a text is not UTF-8, or a record has no contributor where one
            is needed.
        """
        rng = SecureRandom() if rng is None else rng
        key = rng.words(4).tobytes() if key is None else key
        check_key(key)
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

        `key` is the one they were collected under; what is drawn beside comes from `rng`, as for `conclude`.
        """
        check_key(key)
        texts = self.texts(parts, key=key, memory_bytes=memory_bytes)
        return self.conclude(ordered(self.counted(texts, key=key, memory_bytes=memory_bytes)), rng=rng)

    def collect(self, batches: Iterable[pa.RecordBatch], *, key: bytes, first_record: int = 0) -> pa.Table:
        """Digest one range of records; the result is as private as the records themselves.

        `first_record` is the number of records in all earlier ranges, so that ranges can be
        collected apart and in any order.
        """
        check_key(key)
        merge = summing if self.texts_per_contributor is None else capping(self.texts_per_contributor)
        merging = Merging(merge, at_least=MERGED_AT_LEAST)
        merging.add(self._digest_schema.empty_table())
        for part in self.read(batches, key=key, first_record=first_record):
            merging.add(part)
        return merging.result()

    def shares_of(self, table: pa.Table, *, key: bytes, shares: int) -> NDArray[np.int32]:
        """Return the share of each row of a digest, or of text rows; equal contributors, or texts, meet in one."""
        column = table["contributor" if "contributor" in table.column_names else "text"].combine_chunks()
        if pa.types.is_dictionary(column.type):
            hashes = hash_texts(column.dictionary, key=share_key(key))[column.indices.to_numpy()]
        else:
            hashes = hash_texts(column, key=share_key(key))
        place: NDArray[np.int32] = (((hashes >> np.uint64(32)) * np.uint64(shares)) >> np.uint64(32)).astype(np.int32)
        return place

    def texts(
        self, parts: Iterable[pa.Table], *, key: bytes, memory_bytes: int = DEFAULT_MEMORY_BYTES
    ) -> Iterator[pa.Table]:
        """Yield text rows of digests, given in record order; contributors are capped on the way."""
        if self.texts_per_contributor is None:
            yield from parts
            return
        kept = bounded_pairs(self.texts_per_contributor, key=key, memory_bytes=memory_bytes)
        for part in parts:
            kept.add(part)
        for share in kept.shares():
            yield self._texts_of(share)

    def counted(
        self, rows: Iterable[pa.Table], *, key: bytes, memory_bytes: int = DEFAULT_MEMORY_BYTES
    ) -> Iterator[pa.Table]:
        """Yield the texts that reach `minimum`, with exact sums, in disjoint tables."""
        return frequent_texts(rows, minimum=self.minimum, key=key, memory_bytes=memory_bytes)

    def merged_texts(self, parts: Iterable[pa.Table], *, key: bytes) -> pa.Table:
        merging = Merging(summing, at_least=MERGED_AT_LEAST)
        empty = True
        for part in self.texts(parts, key=key):
            merging.add(part)
            empty = False
        return self.counts_schema.empty_table() if empty else merging.result()


def ordered(counted: Iterable[pa.Table]) -> list[pa.Table]:
    tables = list(counted)
    return [pa.concat_tables(tables).sort_by("text")] if tables else []


class NotAGate(ValueError):
    """No class of gates has this name."""


def gate_as_json(gate: CountingGate) -> dict[str, Any]:
    """Return a gate as another process is told it."""
    return {"kind": f"{type(gate).__module__}:{type(gate).__qualname__}", "of": asdict(gate)}  # type: ignore[call-overload]


def gate_from_json(told: Mapping[str, Any]) -> CountingGate:
    kind = resolve_name(told["kind"])
    if not (isinstance(kind, type) and issubclass(kind, CountingGate)):
        raise NotAGate(told["kind"])
    return kind(**told["of"] | {"normalizer": Normalizer(told["of"]["normalizer"])})
