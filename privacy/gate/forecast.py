"""Number of texts of a file that will pass a gate: exact chances, computed before anything is paid."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privacy.gate.capping import capped
from privacy.gate.counting import CountingGate
from privacy.gate.reading import all_counts, pairs
from privacy.mechanisms.randomness import RandomSource, SecureRandom

# Draws of the cap where somebody has more texts than it lets count.
CAP_DRAWS: Final = 8
# Quantile of the normal distribution for a two-sided interval of 95 %.
QUANTILE: Final = 1.96
# No coin or rank of the reader is used here, so its key is no secret.
UNUSED_KEY: Final = bytes(16)


@dataclass(frozen=True, slots=True)
class PassingTexts:
    """Mean number of texts that pass, and an interval that holds the number in 95 % of runs; as private as the file."""

    expected: float
    low: int
    high: int


class GateForecast:
    """Counts contributions as a gate does and sums the chance of each text to pass.

    The chances are exact given which texts of a contributor count. Where somebody has more than the cap, that choice is
    drawn `CAP_DRAWS` times as the gate draws it, and a text's chance is the mean. The gate may count several `uploads`
    like this one together, for the unit `record` only.
    """

    def __init__(self, gate: CountingGate, *, uploads: int = 1, rng: RandomSource | None = None) -> None:
        self._gate, self._uploads = gate, uploads
        self._rng = SecureRandom() if rng is None else rng
        self._held: list[pa.Table] = []

    def add(self, batch: pa.RecordBatch) -> None:
        if self._gate.texts_per_contributor is None:
            self._held += all_counts([batch], self._gate.normalizer)
        else:
            self._held += pairs([batch], self._gate.normalizer, key=UNUSED_KEY, threshold=0)

    def passing(self) -> PassingTexts:
        chances = self._chances() if self._held else np.empty(0)
        expected = float(chances.sum())
        spread = QUANTILE * math.sqrt(float((chances * (1 - chances)).sum()))
        return PassingTexts(expected, max(0, math.floor(expected - spread)), math.ceil(expected + spread))

    def _chances(self) -> NDArray[np.float64]:
        cap = self._gate.texts_per_contributor
        if cap is None:
            counted = pa.concat_tables(self._held).group_by("text").aggregate([("sample_count", "sum")])
            self._held = [counted.rename_columns({"sample_count_sum": "sample_count"})]
            return self._gate.chances(counted["sample_count_sum"].to_numpy() * self._uploads)
        rows = pa.concat_tables(self._held).unify_dictionaries().combine_chunks()
        self._held = [rows]
        whole = capped(rows, rows.num_rows)
        people = np.bincount(_codes(whole, "contributor"), minlength=1)
        if people.max() <= cap:
            return self._chances_of(whole)
        drawn = [self._chances_of(capped(self._ranked(rows), cap)) for _ in range(CAP_DRAWS)]
        chances: NDArray[np.float64] = np.mean(drawn, axis=0)
        return chances

    def _ranked(self, rows: pa.Table) -> pa.Table:
        ranks = (self._rng.random(rows.num_rows) * 2**32).astype(np.uint32)
        return rows.set_column(rows.schema.get_field_index("rank"), "rank", pa.array(ranks))

    def _chances_of(self, kept: pa.Table) -> NDArray[np.float64]:
        texts, people = _codes(kept, "text"), _codes(kept, "contributor")
        size = len(self._held[0]["text"].combine_chunks().dictionary)
        counts = np.bincount(texts, minlength=size)
        # Somebody with j texts weighs 1 / sqrt(j) on each where a gate weighs contributions.
        weights = np.bincount(texts, 1 / np.sqrt(np.bincount(people)[people]), minlength=size)
        return self._gate.chances(counts, mean_weight=weights / np.maximum(counts, 1))


def _codes(kept: pa.Table, column: str) -> NDArray[np.int64]:
    codes: NDArray[np.int64] = kept[column].combine_chunks().indices.to_numpy().astype(np.int64)
    return codes
