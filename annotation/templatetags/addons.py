"""Places in pages where add-ons show something."""

from collections.abc import Sequence
from typing import Final

from django import template

register = template.Library()
# Templates by place; each add-on adds its own when the site starts.
PANELS: Final[dict[str, list[str]]] = {}


@register.filter
def addon_panels(place: str) -> Sequence[str]:
    """Return the templates to include at a place of a page."""
    return PANELS.get(place, ())
