from collections.abc import Iterator
from typing import Any

import pytest

from annotation.choices.catalogue import CATALOGUE, KEYS
from annotation.models.settings import Settings

# What is read where no choice that declares it is chosen, by the reason why that is not its default there.
ABSENT = {
    "nothing is chosen before somebody chooses": {"gate_kind", "selection"},
    "every document names one, and a plain one stands for what names none": {
        "features",
        "estimator",
        "update_policy",
        "question_kind",
    },
    "no gate takes texts for equal, and who reads a text asks whether it is empty": {"normalizer"},
    "a choice that costs nothing has no price": {"selection_epsilon", "training_delta"},
    "a question of another type takes one class, and some class always fits": {"labels_per_record", "none_allowed"},
}


def declared() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for choice in CATALOGUE.all():
        for each in choice.parameters():
            found.setdefault(each.name, []).append(each.default)
    return found


def of_every_project() -> set[str]:
    """Return the parameters of what stands in every project's document, chosen or not."""
    whole = [choice for choice in CATALOGUE.all() if not choice.kind.key]
    return {each.name for choice in whole for each in choice.parameters()}


def otherwise(absent: dict[str, Any]) -> Iterator[str]:
    """Yield what is read as something else than its declarations say.

    Nothing is read of what is not chosen; what is in every document is read as it is declared.
    """
    defaults, whole = declared(), of_every_project()
    for name, value in absent.items():
        same = name in defaults and all(default == value for default in defaults[name])
        unchosen = value is None and name in defaults and name not in whole
        if not same and not unchosen:
            yield name


def test_what_is_read_of_a_silent_document_is_declared_or_says_why_not():
    assert set(otherwise(Settings.absent)) == set().union(*ABSENT.values())


def test_a_project_names_what_is_declared_and_nothing_else():
    assert set(Settings.absent) <= {*declared(), *KEYS}


@pytest.mark.parametrize(("name", "value"), [("overlap", 2), ("windows_ahead", None), ("maximum_releases", 1)])
def test_another_default_is_found(name, value):
    assert name in otherwise({**Settings.absent, name: value})
