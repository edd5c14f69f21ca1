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
            records = _("Each contributor is protected from annotators and anyone with a model.")
        else:
            records = _(
                "Each record is protected from annotators and anyone with a model; all records of one person "
                "together are not."
            )
        return f"{records} {_answers_protected({**preset.defaults, **(settings or {})})}"
    if preset.defaults.get("arrival") == Arrival.STREAM:
        return _(
            "Each record is protected from anyone with a model or with the times of questions. Annotators and "
            "managers see it."
        )
    return _("Each record is protected from anyone with a model. Annotators and managers see it.")


def _answers_protected(settings: Mapping[str, Any]) -> str:
    unit = answers_unit(settings)
    if unit is None:
        return _("Answers are declared public and not protected.")
    if unit == ANNOTATOR:
        return _("All answers of one annotator together are protected from anyone with a model.")
    return _(
        "Each single answer is protected from anyone with a model; several answers of one person together are not."
    )
