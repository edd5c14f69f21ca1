"""Sentences that hold values: a code and its parameters, which read in English until a page tells them."""

# A sentence may be stored, logged or sent to a program before anybody reads it. A parameter holds what the sentence
# shows and no digit more.

import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from functools import lru_cache
from numbers import Number
from string import Formatter
from types import MappingProxyType
from typing import Any, Final

MOMENT_FORMAT: Final = "%Y-%m-%d %H:%M UTC"
MOMENT_KEY: Final = "moment"
# What is said of these in turn is a message; what any other field holds is a name.
INNER: Final = ("reason", "word")
# Beyond it a float written without a point comes back from a JSON column as an integer.
LARGEST_FLOAT: Final = 1e15


class Message(str):
    """An English sentence with the code and the parameters it was made from.

    Parameters
    ----------
    code : str
        Message of the catalogues, with fields in braces; with `plural` its form for one.
    parameters : mapping
        By field: a number, a moment, a name, or a `Message`.
    plural : str
        The form for several, counted by the parameter `n`; empty where there is one form.
    """

    __slots__ = ("code", "parameters", "plural")

    code: str
    parameters: Mapping[str, Any]
    plural: str

    def __new__(cls, code: str, parameters: Mapping[str, Any] | None = None, *, plural: str = "") -> "Message":
        values = dict(parameters or {})
        form = plural if plural and values["n"] != 1 else str.__str__(code)
        self = super().__new__(cls, filled(form, form_texts(form, values)) if values else form)
        object.__setattr__(self, "code", str.__str__(code))
        object.__setattr__(self, "parameters", MappingProxyType(values))
        object.__setattr__(self, "plural", plural)
        return self

    def __str__(self) -> str:
        # As a marked-safe text does it: the words of an exception stay a message.
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a message does not change: {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self.code, dict(self.parameters), self.plural)

    def as_json(self) -> dict[str, Any]:
        values = {name: _as_json(value) for name, value in self.parameters.items()}
        return {"code": self.code, "parameters": values} | ({"plural": self.plural} if self.plural else {})


class Messages(Message):
    __slots__ = ("parts", "separator")

    parts: tuple[Message, ...]
    separator: str

    def __new__(cls, separator: str, parts: Iterable[str]) -> "Messages":
        known = tuple(message_of(part) for part in parts if part)
        self = str.__new__(cls, separator.join(str.__str__(part) for part in known))
        object.__setattr__(self, "parts", known)
        object.__setattr__(self, "separator", separator)
        object.__setattr__(self, "code", "")
        object.__setattr__(self, "parameters", MappingProxyType({}))
        object.__setattr__(self, "plural", "")
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Messages, (self.separator, self.parts)

    def as_json(self) -> dict[str, Any]:
        return {"separator": self.separator, "messages": [part.as_json() for part in self.parts]}


def as_message(template: str, /, **values: Any) -> Message:
    """Fill a template's `{name}` fields; what is said of them in turn stands under `reason` or `word`."""
    return Message(template, _parameters(template, values))


def as_plural_message(one: str, several: str, /, **values: Any) -> Message:
    """Fill the form of a template that goes with the number `n`."""
    return Message(one, _parameters(one, values) | _parameters(several, values), plural=several)


def joined_messages(separator: str, parts: Iterable[str]) -> Message:
    """Put messages one after the other; empty ones are left out."""
    known = [part for part in parts if part]
    return message_of(known[0]) if len(known) == 1 else Messages(separator, known)


def joined_rules(broken: Mapping[str, str]) -> Message:
    return joined_messages(
        "; ", [as_message("{field}: {reason}", field=field, reason=rule) for field, rule in broken.items()]
    )


def message_of(said: str) -> Message:
    return said if isinstance(said, Message) else Message(said)


def message_from(stored: Mapping[str, Any]) -> Message:
    """Return the message of what `as_json` gave; `ValueError` for anything else."""
    try:
        if "messages" in stored:
            return Messages(stored["separator"], [message_from(part) for part in stored["messages"]])
        values = {name: _from_json(value) for name, value in stored["parameters"].items()}
        return Message(stored["code"], values, plural=stored.get("plural", ""))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("this is no message") from error


def form_texts(form: str, values: Mapping[str, Any]) -> dict[str, str]:
    formats = template_fields(form)
    return {name: text_of(value, formats.get(name, "")) for name, value in values.items()}


def filled(form: str, texts: Mapping[str, str]) -> str:
    # The texts are formatted already, as the form of the source says.
    return "".join(
        text + (texts[name] if name is not None else "") for text, name, _spec, _conversion in Formatter().parse(form)
    )


def text_of(value: Any, spec: str) -> str:
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).strftime(MOMENT_FORMAT)
    return format(value, "" if isinstance(value, str) else spec)


@lru_cache(maxsize=2048)
def template_fields(template: str) -> Mapping[str, str]:
    return MappingProxyType(
        {name: spec or "" for _, name, spec, _conversion in Formatter().parse(template) if name is not None}
    )


@lru_cache(maxsize=2048)
def _conversions(template: str) -> frozenset[str]:
    return frozenset(name for _, name, _spec, how in Formatter().parse(template) if name is not None and how == "r")


def _parameters(template: str, values: Mapping[str, Any]) -> dict[str, Any]:
    quoted = _conversions(template)
    return {
        name: _parameter(name, repr(values[name]) if name in quoted else values[name], spec)
        for name, spec in template_fields(template).items()
    }


def _parameter(name: str, value: Any, spec: str) -> Any:
    if isinstance(value, BaseException):
        value = str(value)
    if isinstance(value, Message):
        return value
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).replace(second=0, microsecond=0)
    text = format(value, spec)
    if name.startswith(INNER):
        return Message(text)
    if not isinstance(value, Number) or isinstance(value, bool):
        return text
    number = _number(text)
    return text if number is None or format(number, spec) != text else number


def _number(text: str) -> int | float | None:
    plain = text.replace(",", "")
    if re.fullmatch(r"-?\d+", plain):
        return int(plain)
    try:
        number = float(plain.removesuffix("%"))
    except ValueError:
        return None
    if not math.isfinite(number) or abs(number) >= LARGEST_FLOAT:
        return None
    return number / 100 if plain.endswith("%") else number


def _as_json(value: Any) -> Any:
    if isinstance(value, Message):
        return value.as_json()
    return {MOMENT_KEY: value.isoformat()} if isinstance(value, datetime) else value


def _from_json(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return datetime.fromisoformat(value[MOMENT_KEY]) if MOMENT_KEY in value else message_from(value)


def _made(code: str, parameters: dict[str, Any], plural: str) -> Message:
    return Message(code, parameters, plural=plural)


def gettext_noop(message: str) -> str:
    """Mark a message for the catalogues where pure code declares it; the page that shows it translates it."""
    return message


def ngettext_noop(singular: str, plural: str) -> tuple[str, str]:
    """Mark a message that counts something, as `gettext_noop` marks one that does not."""
    return singular, plural
