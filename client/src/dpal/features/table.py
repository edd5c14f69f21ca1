"""Rows of declared columns to numbers, by declared bounds and categories."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dpal.errors import NotFitting
from dpal.features.base import Featurizer, Rows, scaled_to

BLOCK_ROWS = 8192
DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
WITH_COMMA = re.compile(r"[-+]?(?:\d{1,3}(?:\.\d{3})+|\d+)?(?:,\d+)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True)
class NumericColumn:
    """A number clipped to declared bounds, then mapped to [-1, 1] ("symmetric") or [0, 1] ("unit").

    Missing, unreadable and NaN values become `missing`, itself within the bounds; by default the
    value that maps to 0.
    """

    name: str
    low: float
    high: float
    scale: Literal["symmetric", "unit"] = "symmetric"
    missing: float | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"column {self.name} needs finite low < high, got {self.low} and {self.high}")
        if not math.isfinite(self.high - self.low):
            raise ValueError(f"column {self.name} spans more than a float holds")
        if self.scale not in ("symmetric", "unit"):
            raise ValueError(f"scale must be 'symmetric' or 'unit', got {self.scale!r}")
        if self.missing is not None and not self.low <= self.missing <= self.high:
            raise ValueError(f"column {self.name} needs missing within its bounds, got {self.missing}")

    @property
    def width(self) -> int:
        return 1

    def encode(self, values: Sequence[Any]) -> Rows:
        if any(isinstance(value, str) and DECIMAL_COMMA.fullmatch(value.strip()) for value in values):
            raise NotFitting(f"Column {self.name} has a decimal comma: write its numbers with a point.")
        position = self._place(np.clip(read_numbers(values), self.low, self.high))
        fill = 0.0 if self.missing is None else float(self._place(np.float64(self.missing)))
        return np.where(np.isnan(position), fill, position)[:, None]

    def _place(self, values: Any) -> Any:
        position = (values - self.low) / (self.high - self.low)
        return 2 * position - 1 if self.scale == "symmetric" else position


@dataclass(frozen=True)
class CategoricalColumn:
    """A column for each declared category and one for any other; a missing value sets none."""

    name: str
    categories: tuple[str, ...]

    def __init__(self, name: str, categories: Iterable[str]) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "categories", tuple(str(category) for category in categories))
        if not self.categories or len(set(self.categories)) != len(self.categories):
            raise ValueError(f"column {name} needs distinct categories, at least one")

    @property
    def width(self) -> int:
        return len(self.categories) + 1

    def encode(self, values: Sequence[Any]) -> Rows:
        slot = {category: place for place, category in enumerate(self.categories)}
        other = len(self.categories)
        slots = np.array([-1 if is_missing(value) else slot.get(str(value), other) for value in values], dtype=np.intp)
        block = np.zeros((len(values), self.width))
        present = np.flatnonzero(slots >= 0)
        block[present, slots[present]] = 1.0
        return block


Column = NumericColumn | CategoricalColumn


class Table(Featurizer):
    records = "rows"

    def __init__(self, columns: Sequence[Column], norm_bound: float, row_scaling: str) -> None:
        self.columns = tuple(columns)
        self.numbers = frozenset(column.name for column in self.columns if isinstance(column, NumericColumn))
        self.norm_bound = norm_bound
        self.row_scaling = row_scaling

    @classmethod
    def from_release(cls, parameters: Mapping[str, Any], files: Mapping[str, Path]) -> "Table":
        return cls(columns_from(parameters["columns"]), parameters["norm_bound"], parameters["row_scaling"])

    def raw_rows(self, records: Any) -> Iterator[Rows]:
        values, number = columns_of(records, [column.name for column in self.columns])
        for start in range(0, number, BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            yield self._rows(np.concatenate([column.encode(values[column.name][part]) for column in self.columns], 1))

    def _rows(self, rows: Rows) -> Rows:
        if self.row_scaling == "bounded":
            return rows * (self.norm_bound / math.sqrt(len(self.columns)))
        return scaled_to(rows, self.norm_bound)


def columns_from(described: Iterable[Mapping[str, Any]]) -> list[Column]:
    return [CategoricalColumn(**one) if "categories" in one else NumericColumn(**one) for one in described]


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


def with_point(text: str) -> str | None:
    """Return a number with a decimal comma, perhaps points between thousands, with a point; None if it is no number."""
    return text.replace(".", "").replace(",", ".") if WITH_COMMA.fullmatch(text.strip()) else None


def with_points(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return a row whose named columns had decimal commas with points."""
    found = {name: with_point(row[name]) for name in names if isinstance(row.get(name), str)}
    for name, number in found.items():
        if number is None and math.isfinite(_number(row[name])):
            raise NotFitting(f"Column {name} has a decimal point: leave --decimal out.")
    return {**row, **found}


def is_missing(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, (float, np.floating)):
        return math.isnan(value)
    return isinstance(value, str) and not value.strip()


def read_numbers(values: Sequence[Any]) -> Rows:
    return np.array([_number(value) for value in values], dtype=np.float64)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf
