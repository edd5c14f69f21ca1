"""Values of declared columns as people write them."""

from collections.abc import Mapping
from typing import Any

from django import template
from django.utils.formats import number_format

register = template.Library()


@register.filter
def shown(fields: Mapping[str, Any], column: Mapping[str, Any]) -> str | None:
    value = fields.get(column["name"])
    return None if value is None or value == "" else readable(value)


@register.filter
def bound(column: Mapping[str, Any], name: str) -> str:
    return readable(column[name])


def readable(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    return str(number_format(value, use_l10n=True, force_grouping=True))
