"""JSON of parameter values, with amounts and times of day as texts."""

import math
from contextlib import suppress
from datetime import time
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from privacy.wording import as_message, in_english

# JSON's names of the types a parameter may have.
JSON_TYPES: Final = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    tuple: "array",
    Decimal: "string",
    time: "string",
}
NUMBERS: Final = (int, float, Decimal)
# What the texts of those are that JSON has no type for.
FORMATS: Final = {Decimal: "decimal", time: "time"}
TIME_OF_DAY: Final = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?"


def read(value: Any, wanted: type) -> Any:
    """Return a value of a document in its type; what cannot be read stays as it is, and is refused as such."""
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if wanted is tuple and isinstance(value, list):
        return tuple(value)
    if isinstance(value, str | int) and not isinstance(value, bool) and wanted is Decimal:
        with suppress(InvalidOperation):
            return Decimal(value)
    if isinstance(value, str) and wanted is time:
        with suppress(ValueError):
            return time.fromisoformat(value)
    return value


def written_value(value: Any, decimals: int) -> Any:
    if isinstance(value, Decimal):
        return f"{value:.{decimals}f}"
    if isinstance(value, time):
        return value.isoformat("seconds")
    return list(value) if isinstance(value, tuple) else value


def mistyped(value: Any, wanted: type) -> str:
    if _has_type(value, wanted):
        return ""
    got = repr(value)[:40]
    if wanted is Decimal:
        return in_english('Must be an amount as a text like "12.50", got {got}.', got=got)
    if wanted is time:
        return in_english("Must be a time like 22:30, got {got}.", got=got)
    return in_english("Must be of type {type}, got {got}.", type=JSON_TYPES[wanted], got=got)


def _not_exact(value: float | Decimal, decimals: int) -> str:
    if not math.isfinite(value):
        return in_english("Must be a finite number, got {got}.", got=value)
    if isinstance(value, Decimal) and value != round(value, decimals):
        return in_english("Must have at most {places} decimals, got {got}.", places=decimals, got=value)
    return ""


def beyond_bounds(
    value: float | Decimal,
    *,
    decimals: int,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> str:
    """Say that a number is none to count with or which bound it breaks, empty where it breaks none."""
    if broken := _not_exact(value, decimals):
        return broken
    if above is not None and not value > above:
        return as_message("Must be above {bound:g}, got {got}.", bound=above, got=value)
    if at_least is not None and not value >= at_least:
        return as_message("Must be at least {bound:g}, got {got}.", bound=at_least, got=value)
    if below is not None and not value < below:
        return as_message("Must be below {bound:g}, got {got}.", bound=below, got=value)
    if at_most is not None and not value <= at_most:
        return as_message("Must be at most {bound:g}, got {got}.", bound=at_most, got=value)
    return ""


def pattern_of(wanted: type, decimals: int) -> str:
    if wanted is Decimal:
        return rf"[0-9]+(\.[0-9]{{1,{decimals}}})?" if decimals else "[0-9]+"
    return TIME_OF_DAY if wanted is time else ""


def _has_type(value: Any, wanted: type) -> bool:
    if wanted is tuple:
        return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    if isinstance(value, bool):
        return wanted is bool
    return isinstance(value, int | float) if wanted is float else isinstance(value, wanted)
