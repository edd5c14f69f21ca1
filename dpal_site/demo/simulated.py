"""The demonstration's projects, simulated on the same records: what a release must beat, and medians over seeds."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from dpal_site.demo.plans import CROWD, ProjectPlan
from learner.simulation.crowd import simulate_crowd
from learner.simulation.trusted import simulate_trusted

# Written by benchmarks/demo.py.
MEDIANS = Path(__file__).with_name("medians.json")


@dataclass(frozen=True, slots=True)
class Compared:
    releases: tuple[float, ...]
    version_0: float | None
    random: float
    no_privacy: float
    constant: float

    @classmethod
    def of_medians(cls, name: str) -> "Compared | None":
        found = medians_made_by()["projects"].get(name)
        return None if found is None else cls(**{**found, "releases": tuple(found["releases"])})


def medians_made_by() -> Mapping[str, Any]:
    return cast(Mapping[str, Any], json.loads(MEDIANS.read_text()))


def simulated(plan: ProjectPlan) -> Compared:
    outcome = (simulate_crowd if plan.preset == CROWD else simulate_trusted)(plan.task)
    last = outcome.points[-1]
    releases = last.releases or tuple(point.project for point in outcome.points)
    return Compared(
        releases=tuple(release.accuracy for release in releases),
        version_0=last.version_0.accuracy if plan.data_kind == "text" else None,
        random=last.random.accuracy,
        no_privacy=last.no_privacy.accuracy,
        constant=last.constant.accuracy,
    )
