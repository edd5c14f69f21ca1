"""Template filters for the measures of a release."""

from typing import Any

from django import template
from django.utils.formats import number_format

register = template.Library()


@register.filter
def percent(share: float) -> str:
    """Write a share as a percentage with one decimal, rounded."""
    # As text, because Django cuts the digits of a number off.
    return f"{number_format(f'{100 * share:.1f}')} %"


@register.filter
def six_digits(value: Any) -> str:
    """Write a number with six significant digits, whatever else as it is, and nothing as a dash."""
    if value is None:
        return "–"
    return number_format(f"{value:.6g}") if isinstance(value, float) else str(value)
