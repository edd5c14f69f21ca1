"""Looking a value up by a key that is itself a value."""

from collections.abc import Mapping

from django import template

register = template.Library()


@register.filter
def entry(names: Mapping[str, str], key: str) -> str:
    """Return the words for a key; one without words speaks for itself."""
    return names.get(key, key)
