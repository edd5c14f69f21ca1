"""The project that asks at random beside another one: which projects can have it, and how it would be opened."""

from typing import Any

from django.utils.translation import gettext as _

from annotation.choices.label_types.learning import chosen_estimator
from annotation.choices.presets import PRESETS
from annotation.choices.selections import selection_choice
from annotation.models import Arrival, Project, Selection
from annotation.projects.forms.configuration import standing_values
from annotation.projects.forms.wizard import OWN_LIMIT
from privacy.accounting.units import nano_spent
from privacy.ledger.selectors import spending_by_subject

LONGEST_NAME = 120


def can_stand_beside_random(project: Project) -> bool:
    """Say whether random choice is another way to ask in the project: a stream's records cannot be posted twice."""
    choice = selection_choice(project.settings)
    return project.arrival == Arrival.POOL and choice is not None and not choice.by_chance


def draft_of_random(project: Project) -> dict[str, Any]:
    """Return what the wizard would hold had somebody typed the project anew with random choice.

    What choosing has cost the project for each model goes to training there, so that both models of a version have cost
    the same epsilon.
    """
    spent = spending_by_subject(project.pool_account)
    choosing = sum(nano_spent(line.epsilon_nano) for line in spent if line.name.startswith("round:"))
    releases = sum(line.name.startswith("release:") for line in spent)
    values = standing_values(project)
    trained = chosen_estimator(project.settings)
    each = None if trained is None else trained.of(project.settings).epsilon
    price = {} if each is None else {"training_epsilon": each + (choosing / releases if releases else 0.0)}
    changes = {
        "name": _("%(name)s, random choice") % {"name": project.name}
        if len(project.name) < LONGEST_NAME - 30
        else project.name,
        "selection": Selection.RANDOM.value,
        "selection_epsilon": PRESETS[project.preset].defaults.get("selection_epsilon", 0.0),
        "level": OWN_LIMIT,
        "beside": project.pk,
    }
    return values | changes | price
