"""Cells of the dashboard as people read them; files hold the plain values."""

from datetime import date, datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.formats import date_format, number_format

from annotation.budget.words import delta_words, epsilon_left_words, epsilon_words
from annotation.templatetags.privacy_numbers import percent
from learner.dashboard.tables import Column

register = template.Library()


@register.simple_tag
def cell(value: Any, column: Column) -> str:
    if value is None:
        return "–"
    if isinstance(value, datetime):
        return date_format(timezone.localtime(value), "SHORT_DATETIME_FORMAT")
    if isinstance(value, date):
        return date_format(value, "SHORT_DATE_FORMAT")
    match column.kind:
        case "epsilon":
            return epsilon_words(value)
        case "epsilon_left":
            return epsilon_left_words(value)
        case "delta":
            return delta_words(value)
        case "percent":
            return f"{value:.0f}\N{NO-BREAK SPACE}%"
        case "share":
            return percent(value)
        case "count":
            return number_format(value, force_grouping=True)
    return str(value)
