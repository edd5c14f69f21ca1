"""Places in pages where add-ons show something."""

from collections.abc import Callable
from typing import Final

from django import template
from django.template import Context
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from annotation.models import Project

register = template.Library()
# Templates by place; each add-on adds its own when the site starts.
PANELS: Final[dict[str, list[str]]] = {}
# Each changes whenever what an add-on shows of a project on the page of quality does.
FACTS: Final[list[Callable[[Project], object]]] = []


@register.simple_tag(takes_context=True)
def addon_panels(context: Context, place: str) -> SafeString:
    assert context.template is not None
    engine = context.template.engine
    return format_html_join("", "{}", ((engine.get_template(name).render(context),) for name in PANELS.get(place, ())))
