"""Tables to rows, by declared bounds and declared categories only."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from learner.features.base import Featurizer, RowScaling, scale_rows
from learner.features.clipping import check_norm_bound

Range = Literal["symmetric", "unit"]


@dataclass(frozen=True, slots=True)
class NumericColumn:
    """A number clipped to declared bounds, then mapped to [-1, 1] ("symmetric") or [0, 1] ("unit").

    Missing, unreadable and NaN values become `missing`, itself within the bounds; by default the
    value that maps to 0.

    Raises
    ------
    ValueError
        Unless low < high, both finite, and `missing` lies between them.
    """

    name: str
    low: float
    high: float
    scale: Range = "symmetric"
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
        """Number of output columns."""
        return 1

    def encode(self, values: Sequence[Any]) -> NDArray[np.float64]:
        """Return the scaled column, shape (n, 1)."""
        numbers = np.clip(read_numbers(values), self.low, self.high)
        position = (numbers - self.low) / (self.high - self.low)
        if self.scale == "symmetric":
            position = 2 * position - 1
        if self.missing is None:
            fill = 0.0
        else:
            fill = (self.missing - self.low) / (self.high - self.low)
            fill = 2 * fill - 1 if self.scale == "symmetric" else fill
        return np.where(np.isnan(position), fill, position)[:, None]


@dataclass(frozen=True, slots=True)
class CategoricalColumn:
    """One slot for each declared category and one for any other value; a missing value sets none.

    Raises
    ------
    ValueError
        If categories repeat or none is declared.
    """

    name: str
    categories: tuple[str, ...]

    def __init__(self, name: str, categories: Iterable[str]) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "categories", tuple(str(category) for category in categories))
        if not self.categories or len(set(self.categories)) != len(self.categories):
            raise ValueError(f"column {name} needs distinct categories, at least one")

    @property
    def width(self) -> int:
        """Number of output columns."""
        return len(self.categories) + 1

    def encode(self, values: Sequence[Any]) -> NDArray[np.float64]:
        """Return the one-hot block, shape (n, width), "other" last."""
        slot = {category: index for index, category in enumerate(self.categories)}
        other = len(self.categories)
        slots = np.array([-1 if is_missing(value) else slot.get(str(value), other) for value in values], dtype=np.intp)
        block = np.zeros((len(values), self.width))
        present = np.flatnonzero(slots >= 0)
        block[present, slots[present]] = 1.0
        return block


# Values that a table may hold where a number or a category is due, besides declared ones.
STRANGE: tuple[Any, ...] = (None, "", "not declared", "1e3", float(2**40), -7)


class TabularFeaturizer(Featurizer):
    """Concatenate declared columns.

    Parameters
    ----------
    columns : sequence of NumericColumn or CategoricalColumn
        In output order, names distinct, at least one.
    norm_bound : float
        Bound on the L2 norm of every row.
    row_scaling : {"bounded", "unit"}
        "bounded" divides by the square root of the number of columns, so that nothing is ever
        clipped; "unit" stretches every row to the bound.

    Raises
    ------
    ValueError
        If names repeat, no column is given, or a parameter is out of range.
    """

    kind = "tabular"
    reads = "table"

    def __init__(
        self,
        columns: Sequence[NumericColumn | CategoricalColumn],
        norm_bound: float = 1.0,
        row_scaling: RowScaling = "bounded",
    ) -> None:
        self.columns = tuple(columns)
        names = [column.name for column in self.columns]
        if not names or len(set(names)) != len(names):
            raise ValueError("columns need distinct names, at least one")
        if row_scaling not in ("bounded", "unit"):
            raise ValueError(f"row_scaling must be 'bounded' or 'unit', got {row_scaling!r}")
        self.norm_bound = check_norm_bound(norm_bound)
        self.row_scaling: RowScaling = row_scaling

    @property
    def dimension(self) -> int:
        """Number of columns of the output."""
        return sum(column.width for column in self.columns)

    def parameters(self) -> dict[str, Any]:
        """Keyword arguments that rebuild the featuriser, as plain JSON values."""
        columns: list[dict[str, Any]] = []
        for column in self.columns:
            described = asdict(column)
            if isinstance(column, CategoricalColumn):
                described["categories"] = list(column.categories)
            columns.append(described)
        return {"columns": columns, "norm_bound": self.norm_bound, "row_scaling": self.row_scaling}

    @classmethod
    def from_parameters(cls, parameters: dict[str, Any]) -> Self:
        """Build the featuriser that `parameters` describes."""
        columns = [
            CategoricalColumn(**column) if "categories" in column else NumericColumn(**column)
            for column in parameters["columns"]
        ]
        return cls(**{**parameters, "columns": columns})

    def example_records(self) -> list[Any]:
        """Return rows that go through declared bounds and categories, then rows of what nobody declared."""
        choices: dict[str, list[Any]] = {
            column.name: list(column.categories)
            if isinstance(column, CategoricalColumn)
            else [column.low, column.high, (column.low + column.high) / 2]
            for column in self.columns
        }
        fitting = [{name: known[place % len(known)] for name, known in choices.items()} for place in range(3)]
        return [*fitting, *(dict.fromkeys(choices, value) for value in STRANGE), {}]

    def raw_rows(
        self, batch: pa.RecordBatch | pa.Table | Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]]
    ) -> NDArray[np.float64]:
        """Return scaled rows, shape (n, dimension), for a table or a list of records.

        A column that the batch does not have is missing in every row.
        """
        names = [column.name for column in self.columns]
        values, n_rows = columns_of(batch, names)
        if n_rows == 0:
            return np.empty((0, self.dimension))
        blocks = [column.encode(values[column.name]) for column in self.columns]
        return scale_rows(
            np.concatenate(blocks, axis=1),
            scaling=self.row_scaling,
            row_bound=math.sqrt(len(self.columns)),
            norm_bound=self.norm_bound,
        )


def columns_of(batch: Any, names: Sequence[str]) -> tuple[dict[str, Sequence[Any]], int]:
    """Return the named columns of any supported batch, and its number of rows."""
    if isinstance(batch, pa.RecordBatch | pa.Table):
        n_rows = batch.num_rows
        found = {name: _plain_column(batch.column(name)) for name in names if name in batch.schema.names}
    elif isinstance(batch, Mapping):
        n_rows = max((len(column) for column in batch.values()), default=0)
        found = {name: batch[name] for name in names if name in batch}
        if any(len(column) != n_rows for column in found.values()):
            raise ValueError("columns of one batch must be equally long")
    else:
        n_rows = len(batch)
        return {name: [record.get(name) for record in batch] for name in names}, n_rows
    return {name: found.get(name, [None] * n_rows) for name in names}, n_rows


def is_missing(value: Any) -> bool:
    """Say whether a cell is empty: None, NaN or blank text."""
    if value is None:
        return True
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    return isinstance(value, str) and not value.strip()


def read_numbers(values: Sequence[Any]) -> NDArray[np.float64]:
    """Return numbers, shape (n,), with NaN for whatever is none."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        return values.astype(np.float64)
    return np.array([_read_number(value) for value in values], dtype=np.float64)


def _read_number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _plain_column(column: pa.Array | pa.ChunkedArray) -> Sequence[Any]:
    """Hand numbers over as numpy (null as NaN) and everything else as Python values."""
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        numbers: NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return numbers  # type: ignore[return-value]
    values: list[Any] = column.to_pylist()
    return values
