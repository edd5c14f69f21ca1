"""A row of a plan in the steps of a new project: what its owner would have typed."""

from collections.abc import Mapping
from typing import Any

from annotation.choices.preset import Preset
from annotation.projects.forms.choosing import ChoosingForm
from annotation.projects.forms.wizard import as_sent, draft_form
from learner.planning.rows import PRICES


def can_be_typed(form: ChoosingForm, changes: Mapping[str, Any]) -> bool:
    """Say whether the steps ask for all that a row changes; prices follow from the rest."""
    return changes.keys() - {*PRICES} <= form.fields.keys()


def draft_with(preset: Preset, draft: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a draft with exactly the settings of a row, None where its steps would make others of them.

    A price that is planned anyway is not typed, so that it follows a limit that is changed later.
    """
    typed = {name: as_sent(value) for name, value in changes.items()}
    free = {name: value for name, value in {**draft, **typed}.items() if name not in PRICES}
    for wanted in (free, {**draft, **typed}):
        form = draft_form(preset, wanted, assumed=True)
        if form.is_valid():
            values = form.project_values()
            if all(values.get(name) == value for name, value in changes.items()):
                return wanted
    return None
