"""How epsilon and delta are written for people: what is spent never smaller, what is left never larger than it is.

With the point or comma of the page.
"""

import math
from decimal import Decimal

from django.utils.formats import get_format


def epsilon_words(value: float | None) -> str:
    """Three digits after the point, rounded up; a dash where there is no amount."""
    if value is None:
        return "–"
    return _with_mark(f"{math.ceil(round(value * 1000, 6)) / 1000:.3f}")


def epsilon_left_words(value: float | None) -> str:
    """Three digits after the point, rounded down; a dash where there is no amount."""
    if value is None:
        return "–"
    return _with_mark(f"{math.floor(round(value * 1000, 6)) / 1000:.3f}")


def delta_words(value: float | None) -> str:
    """Two significant digits in scientific notation, rounded up."""
    if not value:
        return "0" if value == 0 else "–"
    exponent = math.floor(math.log10(value))
    mantissa = math.ceil(round(value / 10**exponent * 10, 6)) / 10
    if mantissa >= 10:
        mantissa, exponent = 1.0, exponent + 1
    return _with_mark(f"{mantissa:.1f}e{exponent}")


def typed_words(units: int, places: int) -> str:
    """Return a limit in whole units exactly, as somebody types it: sent back unchanged it is the same limit."""
    value = Decimal(units).scaleb(-places).normalize()
    return f"{value:f}" if value == 0 or value >= Decimal("0.0001") else str(value).lower()


def _with_mark(number: str) -> str:
    return number.replace(".", str(get_format("DECIMAL_SEPARATOR")))
