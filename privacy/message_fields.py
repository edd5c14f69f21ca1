"""Columns that hold messages: as code and parameters in the database, as `Message` in Python."""

from typing import Any, Final

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from privacy.wording import Message, message_from, message_of

# What `Message.as_json` and `Messages.as_json` write, as a condition of a JSON path.
SHAPE: Final = (
    '(@.code.type() == "string" && @.parameters.type() == "object")'
    ' || (@.separator.type() == "string" && @.messages.type() == "array")'
)


class MessageField(models.JSONField):
    description = "What is said, as a code and its parameters"

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("default", str)
        super().__init__(*args, **options)

    def get_prep_value(self, value: Any) -> Any:
        """Return what the column holds; a sentence without values is its own code."""
        return super().get_prep_value(message_of(value).as_json() if isinstance(value, str) else value)

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        found = super().from_db_value(value, expression, connection)
        return message_from(found) if isinstance(found, dict) else found

    def to_python(self, value: Any) -> Any:
        return message_from(value) if isinstance(value, dict) else value

    def value_to_string(self, obj: models.Model) -> Any:
        return message_of(self.value_from_object(obj)).as_json()

    def db_check(self, connection: BaseDatabaseWrapper) -> str:
        column = connection.ops.quote_name(str(self.column))
        # A path looks into a list by itself.
        return f"jsonb_typeof({column}) = 'object' AND {column} @? '$ ? ({SHAPE})'"


class MessagesInField(models.JSONField):
    """A document some values of which are messages: those that `inside`, a JSON path, leads to."""

    description = "A document with what is said in it, as codes and parameters"

    def __init__(self, *args: Any, inside: str, **options: Any) -> None:
        self.inside = inside
        super().__init__(*args, **options)

    def deconstruct(self) -> Any:
        name, path, args, options = super().deconstruct()
        return name, path, args, options | {"inside": self.inside}

    def get_prep_value(self, value: Any) -> Any:
        return super().get_prep_value(_stored(value))

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        return _read(super().from_db_value(value, expression, connection))

    def db_check(self, connection: BaseDatabaseWrapper) -> str:
        column = connection.ops.quote_name(str(self.column))
        another = f"""{column} @? '{self.inside}.type() ? (@ != "object")'"""
        return f"NOT {another} AND NOT {column} @? '{self.inside} ? (!({SHAPE}))'"


def _stored(value: Any) -> Any:
    if isinstance(value, Message):
        return value.as_json()
    if isinstance(value, dict):
        return {name: _stored(part) for name, part in value.items()}
    return [_stored(part) for part in value] if isinstance(value, list | tuple) else value


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() in ({"code", "parameters"}, {"code", "parameters", "plural"}, {"separator", "messages"}):
            return message_from(value)
        return {name: _read(part) for name, part in value.items()}
    return [_read(part) for part in value] if isinstance(value, list) else value
