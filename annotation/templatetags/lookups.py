"""Looking a value up by a key that is itself a value."""

from collections.abc import Mapping

from django import template

register = template.Library()


@register.filter
def entry(names: Mapping[str, str], key: str) -> str:
    return names.get(key, key)
