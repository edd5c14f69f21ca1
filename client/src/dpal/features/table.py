"""Rows of declared columns to numbers, by declared bounds and categories."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpal.errors import NotFitting
from dpal.features.base import Featurizer, Rows, scaled_to

BLOCK_ROWS = 8192


@dataclass(frozen=True)
class Number:
    """A number clipped to declared bounds; what is missing or no number becomes a declared one."""

    name: str
    low: float
    high: float
    scale: str
    missing: float | None

    def encode(self, values: Sequence[Any]) -> Rows:
        """Return one column, shape (n, 1)."""
        read = np.array([_number(value) for value in values], dtype=np.float64)
        position = self._place(np.clip(read, self.low, self.high))
        fill = 0.0 if self.missing is None else float(self._place(np.float64(self.missing)))
        return np.where(np.isnan(position), fill, position)[:, None]

    def _place(self, values: Any) -> Any:
        position = (values - self.low) / (self.high - self.low)
        return 2 * position - 1 if self.scale == "symmetric" else position


@dataclass(frozen=True)
class Category:
    """A column for each declared category and one for any other; a missing value sets none."""

    name: str
    categories: tuple[str, ...]

    def encode(self, values: Sequence[Any]) -> Rows:
        """Return the columns, shape (n, categories + 1)."""
        slot = {category: place for place, category in enumerate(self.categories)}
        other = len(self.categories)
        slots = np.array([-1 if _is_missing(value) else slot.get(str(value), other) for value in values], dtype=np.intp)
        block = np.zeros((len(values), other + 1))
        present = np.flatnonzero(slots >= 0)
        block[present, slots[present]] = 1.0
        return block


class Table(Featurizer):
    """Declared columns side by side."""

    records = "rows"

    def __init__(self, columns: Sequence[Number | Category], norm_bound: float, row_scaling: str) -> None:
        self.columns = tuple(columns)
        self.norm_bound = norm_bound
        self.row_scaling = row_scaling

    @classmethod
    def from_release(cls, parameters: Mapping[str, Any], files: Mapping[str, Path]) -> "Table":
        """Build it from its parameters."""
        columns = [
            Category(column["name"], tuple(column["categories"])) if "categories" in column else Number(**column)
            for column in parameters["columns"]
        ]
        return cls(columns, parameters["norm_bound"], parameters["row_scaling"])

    def raw_rows(self, records: Any) -> Iterator[Rows]:
        """Yield rows of a block of records each: objects, a mapping of columns, or a data frame."""
        values, number = columns_of(records, [column.name for column in self.columns])
        for start in range(0, number, BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            yield self._rows(np.concatenate([column.encode(values[column.name][part]) for column in self.columns], 1))

    def _rows(self, rows: Rows) -> Rows:
        if self.row_scaling == "bounded":
            return rows * (self.norm_bound / math.sqrt(len(self.columns)))
        return scaled_to(rows, self.norm_bound)


def columns_of(records: Any, names: Sequence[str]) -> tuple[dict[str, Sequence[Any]], int]:
    """Return the named columns and how many rows there are; a column that is not there is missing in every row."""
    if hasattr(records, "to_pydict"):
        records = records.to_pydict()
    if hasattr(records, "iloc"):
        found = {name: records[name].tolist() for name in names if name in records.columns}
        number = len(records)
    elif isinstance(records, Mapping):
        found = {name: list(records[name]) for name in names if name in records}
        number = max((len(column) for column in records.values()), default=0)
        if any(len(column) != number for column in found.values()):
            raise NotFitting("The columns are not equally long.")
    else:
        if any(not isinstance(record, Mapping) for record in records):
            raise NotFitting(f"This model reads rows of the columns {', '.join(names)}: objects, or a data frame.")
        return {name: [record.get(name) for record in records] for name in names}, len(records)
    return {name: found.get(name, [None] * number) for name in names}, number


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, (float, np.floating)):
        return math.isnan(value)
    return isinstance(value, str) and not value.strip()


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf
