"""Figures of a project's machine for its panel, and the names of the language models there are."""

from django import template
from django.conf import settings

from addons.language_models.selectors import machine_sheet

register = template.Library()
register.simple_tag(machine_sheet)


@register.simple_tag
def language_model_names() -> list[str]:
    return sorted(settings.LANGUAGE_MODELS)
