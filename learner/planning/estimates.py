"""What a plan's simulation reached without privacy: the nearest thing to a project's own figure, which stays unknown.

The labels of a project are private, so how well a model without noise would learn from them is too. A plan simulates
the same settings on data about nobody, with and without noise.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from annotation.models import Project
from learner.errors import ExtraMissing
from learner.models.planning import PlanSimulation
from learner.planning.plan_setups import default_records, setup_of

# What says how much is planned, not what: the same settings with more records or a smaller rest of the limit.
AMOUNTS: Final = ("records", "releases", "alternatives", "drawn_in", "falling", "askable")
# A point stands for numbers of labels up to so many times as large or as small.
NEAR: Final = 2.0
# Real images before made-up clouds.
DATA: Final = ("digits", "made_up")


@dataclass(frozen=True, slots=True)
class PlannersEstimate:
    """Accuracy without privacy on a plan's data, beside what the same plan reached with it.

    Attributes
    ----------
    data : {"digits", "made_up"}
        What it was simulated on; nothing of the project.
    labels : int
        Labels of that point.
    accuracy, macro_f1 : float
        Without noise, tuned on its own labels; means over seeds.
    with_privacy : float
        Accuracy of the project's own settings at the same point.
    """

    data: str
    labels: int
    accuracy: float
    macro_f1: float
    with_privacy: float


@dataclass(frozen=True, slots=True)
class SimulatedCourse:
    """The points of the newest simulation of a project's settings; none where nobody made one."""

    curves: Mapping[str, Sequence[Mapping[str, Any]]]
    plain: Mapping[str, Sequence[Mapping[str, Any]]]

    def at(self, labels: int | None) -> PlannersEstimate | None:
        """Return the estimate for about this number of labels."""
        if not labels:
            return None
        for data in DATA:
            pairs = list(zip(self.curves.get(data, ()), self.plain.get(data, ()), strict=False))
            if not pairs:
                continue
            private, clear = min(pairs, key=lambda pair: _distance(pair[1]["labels"], labels))
            if _distance(clear["labels"], labels) <= math.log(NEAR):
                return PlannersEstimate(data, clear["labels"], clear["mean"], clear["macro_f1"], private["mean"])
        return None


def simulated_course(project: Project) -> SimulatedCourse:
    """Return the newest simulation of the settings that stand, whoever asked for it; it rests on public data alone.

    None is found where the site has lost the library or the weights that the settings need.
    """
    try:
        described = setup_of(project, default_records(project)).as_json()
    except ExtraMissing:
        return SimulatedCourse({}, {})
    same = {name: value for name, value in described.items() if name not in AMOUNTS}
    found = PlanSimulation.objects.filter(result__isnull=False, setup__contains=same).order_by("-created_at").first()
    result = {} if found is None or found.result is None else found.result
    return SimulatedCourse(result.get("curves", {}), result.get("plain", {}))


def _distance(some: int, other: int) -> float:
    return abs(math.log(max(1, some) / max(1, other)))
