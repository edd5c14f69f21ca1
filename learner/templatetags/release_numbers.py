"""Template filters for the measures of a release."""

from datetime import datetime
from typing import Any

from django import template
from django.utils.formats import number_format

from annotation.templatetags.privacy_numbers import percent
from privacy import moments

register = template.Library()
register.filter(percent)


@register.filter
def whole_second(moment: datetime) -> datetime:
    """Cut a time to the second: those outside read it, and how long a step took tells something of what it read."""
    return moments.whole_second(moment)


@register.filter
def six_digits(value: Any) -> str:
    """Write a number with six significant digits, whatever else as it is, and nothing as a dash."""
    if value is None:
        return "–"
    return number_format(f"{value:.6g}") if isinstance(value, float) else str(value)
