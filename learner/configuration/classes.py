"""The classes that a project's models tell apart: those that count as themselves, in their order.

Everything that learns reads labels through here. A merge names each label anew by itself, before a mechanism sees it.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from annotation.answers.selectors import counting_places
from annotation.choices.merged_classes import unmerged_classes
from annotation.models import Project


def learned_classes(project: Project) -> tuple[str, ...]:
    """Return the names of the classes that a training learns from now on."""
    return unmerged_classes(project.classes, project.merged_classes)


def learned_numbers(project: Project, choices: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return of stored answers the numbers of their classes among those that are learned, shape (n,)."""
    places = np.array(counting_places(project), dtype=np.int64)
    return np.searchsorted(np.unique(places), places[choices]) if len(places) else choices


def counted_places(project: Project, choices: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of the classes that stored answers count as, shape (n,)."""
    places = np.array(counting_places(project), dtype=np.int64)
    return places[choices] if len(places) else choices


def places_of_model(project: Project, names: Sequence[str]) -> NDArray[np.int64]:
    """Return of each class of a model of the project the position of the one it counts as now, shape (n_classes,)."""
    if not counting_places(project):
        return np.arange(len(names), dtype=np.int64)
    known = {str(name): place for place, name in enumerate(project.classes)}
    return counted_places(project, np.array([known[name] for name in names], dtype=np.int64))
