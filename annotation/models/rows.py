"""Rows of plain SQL as model instances."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from django.db import connection
from django.db.models import Field, Model

ModelRow = TypeVar("ModelRow", bound=Model)


def fetch_one(statement: str, values: Sequence[Any] | Mapping[str, Any]) -> tuple[Any, ...] | None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row


class Columns(Generic[ModelRow]):
    """Columns of one model in plain SQL; fields left out are deferred."""

    def __init__(self, model: type[ModelRow], alias: str, *, without: Iterable[str] = ()) -> None:
        fields: list[Field[Any, Any]] = [field for field in model._meta.concrete_fields if field.attname not in without]
        self._model = model
        self._names = [field.attname for field in fields]
        self._decoders = {
            place: (field, decode)
            for place, field in enumerate(fields)
            if (decode := getattr(field, "from_db_value", None)) is not None
        }
        self.sql = ", ".join(f"{alias}.{connection.ops.quote_name(str(field.column))}" for field in fields)

    def build(self, values: Iterator[Any]) -> ModelRow | None:
        """Take this model's columns off `values`; None where an outer join found no row."""
        own = [next(values) for _ in self._names]
        if own[0] is None:
            return None
        for place, (field, decode) in self._decoders.items():
            own[place] = decode(own[place], field, connection)
        return self._model.from_db(connection.alias, self._names, own)
