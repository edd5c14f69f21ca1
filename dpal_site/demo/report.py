"""The demonstration's result in lines of at most 100 columns: what each release reached, and what it must beat."""

import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from annotation.models import Project
from dpal_site.demo.plans import CROWD, ProjectPlan
from dpal_site.demo.stage import share_right
from learner.models import ModelRelease
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


WIDTH = 100
CELLS = "  {:28}{:>9}{:>24}{:>13}{:>20}"


def report_lines(plan: ProjectPlan, project: Project, beside: Compared) -> Iterator[str]:
    releases = list(ModelRelease.objects.filter(project=project, version__lte=plan.releases).order_by("version"))
    medians = Compared.of_medians(plan.name)
    last = releases[-1]
    yield plan.title
    heading = "" if medians is None else f"median of {medians_made_by()['seeds']} runs"
    yield _line("", "labels", "epsilon spent", "this run", heading)
    if beside.version_0 is not None:
        yield _line("version 0, from words", "0", "0", beside.version_0, medians.version_0 if medians else None)
    for release in releases:
        usual = None if medians is None else medians.releases[release.version - 1]
        yield _line(f"release {release.version}", release.labels_used, spent(release), share_right(release), usual)
    asked = plan.task.label_counts[-1]
    yield _line("random choice, same epsilon", asked, spent(last), beside.random, medians.random if medians else None)
    yield _line("no privacy", asked, "no limit", beside.no_privacy, medians.no_privacy if medians else None)
    yield _line("always the same class", "0", "0", beside.constant, medians.constant if medians else None)
    yield from textwrap.wrap(verdict(plan.name, share_right(last), beside), WIDTH)
    yield ""


def spent(release: ModelRelease) -> str:
    terms = release.guarantee
    return " + ".join(f"{each['spent_epsilon']:.2f} of {each['limit_epsilon']:g}" for each in terms)


def verdict(name: str, reached: float, beside: Compared) -> str:
    """Say in one sentence whether the last release of this run beats all that is free or as dear."""
    others = {"random choice": beside.random, "a constant": beside.constant}
    if beside.version_0 is not None:
        others = {"version 0": beside.version_0} | others
    lost = [f"{other} ({share:.1%})" for other, share in others.items() if reached <= share]
    if lost:
        return f"{name}: LOST in this run: the last release has {reached:.1%}, no more than {' and '.join(lost)}."
    beaten = ", ".join(f"{other} {share:.1%}" for other, share in others.items())
    return f"{name}: the last release is right in {reached:.1%}; {beaten}, no privacy {beside.no_privacy:.1%}."


def _line(name: str, labels: int | str, epsilon: str, share: float | str, usual: float | str | None) -> str:
    shown = [each if isinstance(each, str) else "" if each is None else f"{each:.1%}" for each in (share, usual)]
    return CELLS.format(name, labels if isinstance(labels, str) else f"{labels:,}", epsilon, *shown).rstrip()
