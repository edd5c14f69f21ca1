"""Sentences that say who is protected from whom."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from annotation.choices.presets import Preset
from annotation.choices.randomizers import ANNOTATOR, answers_unit
from annotation.models import Arrival, Oracle, PrivacyUnit


def who_is_protected(preset: Preset, unit: str | None, settings: Mapping[str, Any] | None = None) -> str:
    """Say who is protected from whom; `settings` over those of the preset say it of the answers."""
    if preset.oracle == Oracle.CROWD:
        if (unit or preset.defaults["privacy_unit"]) == PrivacyUnit.CONTRIBUTOR:
            records = _(
                "Each contributor, with all they gave, is protected from the annotators and from everybody who gets a "
                "model."
            )
        else:
            records = _(
                "Each record is protected from the annotators and from everybody who gets a model, but not all records "
                "of one person together."
            )
        return f"{records} {_answers_protected({**preset.defaults, **(settings or {})})}"
    if preset.defaults.get("arrival") == Arrival.STREAM:
        return _(
            "Each record is protected from everybody but the annotators and managers, who see it: from those who get a "
            "model, and from those who learn what was asked about and when."
        )
    return _(
        "Each record is protected from everybody but the annotators and managers, who see it: from all who get a model."
    )


def _answers_protected(settings: Mapping[str, Any]) -> str:
    unit = answers_unit(settings)
    if unit is None:
        return _("The answers are declared not to be secret, and nothing protects them.")
    if unit == ANNOTATOR:
        return _("All answers of one annotator together are protected from everybody who gets a model.")
    return _(
        "Each single answer, but not all answers of one annotator together, is protected from everybody who gets a "
        "model."
    )
