"""Figures of a project's machine, for its panel."""

from django import template

from addons.language_models.selectors import machine_sheet

register = template.Library()
register.simple_tag(machine_sheet)
