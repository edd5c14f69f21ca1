"""How epsilon and delta are written on pages: never shown smaller than they are."""

import math

from django import template

register = template.Library()


@register.filter
def epsilon(value: float | None) -> str:
    """Three digits after the point, rounded up; a dash where there is no amount."""
    if value is None:
        return "–"
    return f"{math.ceil(round(value * 1000, 6)) / 1000:.3f}"


@register.filter
def delta(value: float | None) -> str:
    """Two significant digits in scientific notation, rounded up."""
    if not value:
        return "0" if value == 0 else "–"
    exponent = math.floor(math.log10(value))
    mantissa = math.ceil(round(value / 10**exponent * 10, 6)) / 10
    if mantissa >= 10:
        mantissa, exponent = 1.0, exponent + 1
    return f"{mantissa:.1f}e{exponent}"
