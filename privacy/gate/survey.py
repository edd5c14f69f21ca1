"""Frequencies of texts in a pool, from sketches: for an administrator's plan, as private as the records."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privacy.accounting.cost import Unit
from privacy.gate.capping import capped, places_within
from privacy.gate.cardinality import Cardinality
from privacy.gate.count_min import CountMinSketch
from privacy.gate.hashing import Words, check_key, hash_key, hash_texts, pair_hashes
from privacy.gate.membership import MembershipSketch
from privacy.gate.normalizers import Normalizer
from privacy.gate.reading import all_counts, check_unit, pairs
from privacy.gate.table import BYTES_PER_KEY, CountTable
from privacy.mechanisms.randomness import RandomSource, SecureRandom

SKETCH_WIDTH: Final = 2**20
SKETCH_DEPTH: Final = 4
# Up to here an exact table is smaller than the sketch: about 1.4 million texts.
EXACT_TEXTS: Final = SKETCH_WIDTH * SKETCH_DEPTH * 4 // BYTES_PER_KEY
SAMPLED_RECORDS: Final = 2**16


@dataclass(frozen=True, slots=True)
class Frequencies:
    """Numbers of texts by how often they are said: not private, for the administrator's eyes only.

    Parameters
    ----------
    counts : ndarray of int64, shape (n,)
        Numbers of contributions to a text.
    texts : ndarray of float64, shape (n,)
        Numbers of texts with so many contributions, estimated where the pool is large.
    distinct_texts : float
        All texts.
    contributions : int
        All contributions: records, or capped (contributor, text) pairs.
    mean_weight : float
        Mean weight of a contribution in the weighted Gaussian gate, 1 for records.
    exact : bool
        False where sketches estimated.
    """

    counts: NDArray[np.int64]
    texts: NDArray[np.float64]
    distinct_texts: float
    contributions: int
    mean_weight: float = 1.0
    exact: bool = True

    def to_json(self) -> dict[str, Any]:
        return {
            "counts": self.counts.tolist(),
            "texts": self.texts.tolist(),
            "distinct_texts": self.distinct_texts,
            "contributions": self.contributions,
            "mean_weight": self.mean_weight,
            "exact": self.exact,
        }

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Self:
        arrays = {
            "counts": np.array(body["counts"], dtype=np.int64),
            "texts": np.array(body["texts"], dtype=np.float64),
        }
        return cls(**{**body, **arrays})


class PoolSurvey:
    """Counts a pool in bounded memory and one pass: an exact table while it is small, then a count-min sketch.

    Beyond `exact_texts` texts, a uniform sample of the contributions stands for all of them: each brings the estimated
    count of its text. Up to `expected_pairs` (contributor, text) pairs at most 1 % of them are missed. Unit, cap and
    normaliser are those of a gate.
    """

    def __init__(
        self,
        *,
        key: bytes,
        unit: Unit = "record",
        texts_per_contributor: int | None = None,
        normalizer: Normalizer = Normalizer.L1,
        expected_pairs: int = 2**22,
        exact_texts: int = EXACT_TEXTS,
        rng: RandomSource | None = None,
    ) -> None:
        check_key(key)
        check_unit(unit, texts_per_contributor)
        self._key, self._cap, self._normalizer, self._exact_texts = key, texts_per_contributor, normalizer, exact_texts
        self._rng = SecureRandom() if rng is None else rng
        self._cardinality = Cardinality(14)
        self._counts: CountTable | CountMinSketch = CountTable()
        self._seen = MembershipSketch.for_error(expected_pairs if texts_per_contributor else 1, 0.01)
        self._contributors = CountTable()
        self._sampled: Words = np.empty(0, dtype=np.uint64)
        self._priorities = np.empty(0)

    @property
    def nbytes(self) -> int:
        sketches = (self._cardinality, self._counts, self._seen, self._contributors, self._sampled, self._priorities)
        return sum(sketch.nbytes for sketch in sketches)

    def update(self, batches: Iterable[pa.RecordBatch]) -> None:
        for hashes, counts in self._contributions(batches):
            self._cardinality.update(hashes)
            self._counts.update(hashes, counts)
            self._sample(np.repeat(hashes, counts))
            if isinstance(self._counts, CountTable) and len(self._counts) > self._exact_texts:
                sketch = CountMinSketch(SKETCH_WIDTH, SKETCH_DEPTH)
                sketch.update(self._counts.hashes, self._counts.counts)
                self._counts = sketch

    def frequencies(self) -> Frequencies:
        total = self._counts.total
        if isinstance(self._counts, CountTable):
            counts, numbers = np.unique(self._counts.counts.astype(np.int64), return_counts=True)
            return Frequencies(counts, numbers.astype(np.float64), len(self._counts), total, self._mean_weight())
        counts, numbers = np.unique(self._counts.estimate(self._sampled), return_counts=True)
        # A text said f times is met by a sampled contribution f times as often as one that is said once.
        texts = numbers * (total / len(self._sampled)) / counts
        return Frequencies(counts, texts, self._cardinality.count(), total, self._mean_weight(), exact=False)

    def _contributions(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Words, NDArray[np.int64]]]:
        hashing = hash_key(self._key)
        if self._cap is None:
            for part in all_counts(batches, self._normalizer):
                yield hash_texts(part["text"].combine_chunks(), key=hashing), part["sample_count"].to_numpy()
            return
        for part in pairs(batches, self._normalizer, key=self._key, threshold=0):
            fresh = self._fresh(capped(part, self._cap), self._cap, hashing)
            tallied = pc.value_counts(pa.array(fresh))
            yield tallied.field("values").to_numpy(), tallied.field("counts").to_numpy()

    def _fresh(self, part: pa.Table, cap: int, hashing: bytes) -> Words:
        texts, contributors = (part[name].combine_chunks() for name in ("text", "contributor"))
        text_hashes = hash_texts(texts.dictionary, key=hashing)[texts.indices.to_numpy()]
        contributor_hashes = hash_texts(contributors.dictionary, key=hashing)[contributors.indices.to_numpy()]
        new = np.flatnonzero(self._seen.update(pair_hashes(text_hashes, contributor_hashes)))
        places = places_within(contributors.indices.to_numpy()[new]) + self._contributors.estimate(
            contributor_hashes[new]
        )
        new = new[places < cap]
        self._contributors.update(contributor_hashes[new])
        fresh: Words = text_hashes[new]
        return fresh

    def _sample(self, hashes: Words) -> None:
        drawn = self._rng.random(len(hashes))
        if len(self._priorities) == SAMPLED_RECORDS:
            low = drawn < self._priorities[-1]
            hashes, drawn = hashes[low], drawn[low]
        priorities = np.concatenate([self._priorities, drawn])
        lowest = np.argsort(priorities)[:SAMPLED_RECORDS]
        self._sampled, self._priorities = np.concatenate([self._sampled, hashes])[lowest], priorities[lowest]

    def _mean_weight(self) -> float:
        if self._cap is None or not len(self._contributors):
            return 1.0
        return float(np.sqrt(self._contributors.counts).sum() / self._contributors.total)
