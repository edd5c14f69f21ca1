"""Tables to rows, by declared bounds and declared categories only."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpal.features.clipping import check_norm_bound
from dpal.features.table import CategoricalColumn, Column, Table, columns_from
from learner.features.base import Featurizer, RowScaling

# Values that a table may hold where a number or a category is due, besides declared ones.
STRANGE: tuple[Any, ...] = (None, "", "not declared", "1e3", float(2**40), -7)


class TabularFeaturizer(Featurizer):
    """Concatenate declared columns, in output order, of distinct names; rows have an L2 norm of at most `norm_bound`.

    The row scaling "bounded" divides by the square root of the number of columns, so that nothing is ever clipped;
    "unit" stretches every row to the bound.
    """

    kind = "tabular"
    reads = "table"

    def __init__(self, columns: Sequence[Column], norm_bound: float = 1.0, row_scaling: RowScaling = "bounded") -> None:
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
        return sum(column.width for column in self.columns)

    def parameters(self) -> dict[str, Any]:
        columns: list[dict[str, Any]] = []
        for column in self.columns:
            described = asdict(column)
            if isinstance(column, CategoricalColumn):
                described["categories"] = list(column.categories)
            columns.append(described)
        return {"columns": columns, "norm_bound": self.norm_bound, "row_scaling": self.row_scaling}

    @classmethod
    def from_parameters(cls, parameters: dict[str, Any]) -> Self:
        return cls(**{**parameters, "columns": columns_from(parameters["columns"])})

    def example_records(self) -> list[Any]:
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
        """Return scaled rows, shape (n, dimension), for a table or a list of records; absent columns are missing."""
        rows = list(Table(self.columns, self.norm_bound, self.row_scaling).raw_rows(batch))
        return np.concatenate(rows) if rows else np.empty((0, self.dimension))
