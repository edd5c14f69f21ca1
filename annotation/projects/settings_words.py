"""How values of settings read in the history, in the reader's language."""

from typing import Any, Final

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from annotation.choices import form_fields
from annotation.choices.merged_classes import merged_names
from annotation.models import Project

PERCENT: Final = 100
# Shares that their form asks for in percent.
IN_PERCENT: Final = ("gold_share", "gold_warn_below", "gold_pause_below")
CHOICES: Final = {field.attname: dict(field.flatchoices) for field in Project._meta.concrete_fields if field.choices}


def setting_value(setting: str, value: Any) -> str:
    """Return a setting's value, as the history's JSON holds it, as people read it."""
    if value in (None, "", [], {}):
        return _("none")
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, list):
        return ", ".join(str(item["name"] if isinstance(item, dict) else item) for item in value)
    if setting == "merged_classes":
        return ", ".join(f"{name} → {into}" for name, into in merged_names(value).items())
    if setting.endswith("_id"):
        return f"#{value}"
    if setting in IN_PERCENT:
        value *= PERCENT
    if isinstance(value, str) and (words := form_fields.setting_value_label(setting, value)):
        return words
    named = CHOICES.get(setting, {})
    return str(named.get(value, number_format(f"{value:g}") if isinstance(value, float) else value))
