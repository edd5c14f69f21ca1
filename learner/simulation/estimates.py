"""Hints of the planner: the best setting and what a release may reach."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.choices.randomizers import ANNOTATOR
from annotation.models import Project
from annotation.models.imports import OpeningDraft
from learner.errors import ExtraMissing
from learner.models.planning import PlanSimulation
from learner.pools import selectors
from learner.pools.configuration import answers_event_of
from learner.simulation.plan_setups import default_records, setup_of
from privacy.accounting.answers import LARGEST_EPSILON
from privacy.accounting.events import AnswersEvent

# Below so many answers' worth for each class the words about the classes know more.
ANSWERS_A_CLASS: Final = 0.35
STEP: Final = 0.25


def answer_hints(project: Project, questions: int) -> list[str]:
    """Return what is to be said of so many questions to a crowd whose answers are randomised."""
    event = answers_event_of(project)
    if event is None or questions < 1:
        return []
    return [hint for hint in (_too_little(event, questions), _people(project, event, questions)) if hint]


def worth(event: AnswersEvent, epsilon: float, questions: int) -> float:
    """Return how many answers, as they are, so many questions are worth whose responses cost `epsilon` each."""
    return questions * min(1.0, event.randomizations * event.information(epsilon))


def _too_little(event: AnswersEvent, questions: int) -> str:
    """Say where answers add almost nothing, and from which epsilon on they would."""
    enough = ANSWERS_A_CLASS * event.n_classes
    worth_now = worth(event, event.epsilon, questions)
    if worth_now >= enough:
        return ""
    responses = event.randomizations * event.questions_per_annotator
    steps = range(1, int(LARGEST_EPSILON * responses / STEP) + 1)
    helping = next((step * STEP for step in steps if worth(event, step * STEP / responses, questions) >= enough), None)
    numbers = {
        "questions": number_format(questions, force_grouping=True),
        "worth": number_format(f"{worth_now:.1f}"),
        "classes": event.n_classes,
    }
    said = ngettext(
        "At this epsilon %(questions)s question is worth about %(worth)s open "
        "answers, for %(classes)s classes. Class descriptions teach more, for free.",
        "At this epsilon %(questions)s questions are worth about %(worth)s open "
        "answers, for %(classes)s classes. Class descriptions teach more, for free.",
        questions,
    )
    if helping is None or helping > LARGEST_EPSILON:
        return said % numbers
    helps = _("They help from about ε %(epsilon)s on.")
    return f"{said % numbers} {helps % {'epsilon': number_format(f'{helping:g}')}}"


def _people(project: Project, event: AnswersEvent, questions: int) -> str:
    """Say how many annotators are needed where none may answer more than a cap."""
    if event.unit != ANNOTATOR:
        return ""
    people = max(project.overlap, math.ceil(questions * project.overlap / event.questions_per_annotator))
    return ngettext(
        "They need at least %(people)s annotator at %(cap)s answers each.",
        "They need at least %(people)s annotators at %(cap)s answers each.",
        people,
    ) % {"people": number_format(people, force_grouping=True), "cap": event.questions_per_annotator}


# Noise that takes less than this is worth no more epsilon.
MUCH_NOISE: Final = 0.02


def recommendation(result: Mapping[str, Any]) -> str:
    """Return what a simulation advises and why, on clouds in the declared dimension; empty before it is done."""
    private, clear = (result.get(kind, {}).get("made_up") for kind in ("curves", "plain"))
    if not private or not clear:
        return ""
    lost = max(0.0, clear[-1]["mean"] - private[-1]["mean"])
    numbers = {
        "points": number_format(f"{100 * lost:.1f}"),
        "labels": number_format(private[-1]["labels"], force_grouping=True),
    }
    if lost > MUCH_NOISE:
        return _("Plan more records or a larger ε: at %(labels)s labels the noise takes %(points)s points.") % numbers
    return _("Keep this ε: at %(labels)s labels the noise takes only %(points)s points.") % numbers


# How much is planned: the same settings with more records or a smaller rest of the limit.
AMOUNTS: Final = ("records", "releases", "askable")
# A point stands for numbers of labels up to so many times as large or as small.
NEAR: Final = 2.0
# The public file before real images, and these before made-up clouds.
DATA: Final = ("public", "digits", "made_up")


@dataclass(frozen=True, slots=True)
class PlannersEstimate:
    """Accuracy without privacy on a plan's data, beside what the same plan reached with it; all are shares.

    `low` and `high` are the worst and the best simulated project with privacy; a reference is None where the data have
    none.
    """

    data: str
    labels: int
    accuracy: float
    macro_f1: float
    with_privacy: float
    low: float
    high: float
    version_0: float | None = None
    constant: float | None = None

    @property
    def loses_to(self) -> str:
        """The free alternative that is expected to be right as often; empty if there is none."""
        constant = -math.inf if self.constant is None else self.constant
        return selectors.loses_to(self.with_privacy, constant=constant, described=self.version_0)


@dataclass(frozen=True, slots=True)
class SimulatedCourse:
    """Points of the newest simulation of a project's settings, on the best data; none where nobody made one."""

    points: tuple[PlannersEstimate, ...] = ()

    def at(self, labels: int | None) -> PlannersEstimate | None:
        """Return the point of about so many labels."""
        if not labels or not self.points:
            return None
        found = min(self.points, key=lambda point: _distance(point.labels, labels))
        return found if _distance(found.labels, labels) <= math.log(NEAR) else None


def course_of(result: Mapping[str, Any] | None) -> SimulatedCourse:
    if not result:
        return SimulatedCourse()
    for data in DATA:
        pairs = list(zip(result.get("curves", {}).get(data, ()), result.get("plain", {}).get(data, ()), strict=False))
        if pairs:
            references = result.get("references", {}).get(data, {})
            return SimulatedCourse(tuple(_expected(data, *pair, references) for pair in pairs))
    return SimulatedCourse()


def _expected(
    data: str, private: Mapping[str, Any], clear: Mapping[str, Any], references: Mapping[str, float]
) -> PlannersEstimate:
    reached = private["mean"], private["low"], private["high"]
    return PlannersEstimate(data, private["labels"], clear["mean"], clear["macro_f1"], *reached, **references)


def simulation_of(project: Project, draft: OpeningDraft | None = None) -> PlanSimulation | None:
    """Return the newest finished simulation of the settings as they are, never on another project's public file."""
    try:
        described = setup_of(project, default_records(project)).as_json()
    except ExtraMissing:
        return None
    same = {name: value for name, value in described.items() if name not in AMOUNTS}
    own = {"draft": draft} if draft is not None else {"project": project}
    found = PlanSimulation.objects.filter(setup__contains=same).select_related("job").order_by("-created_at")
    for each in (found.filter(**own), found.filter(project=None, draft=None)):
        if newest := each.filter(result__isnull=False).first() or each.first():
            return newest
    return None


def _distance(some: int, other: int) -> float:
    return abs(math.log(max(1, some) / max(1, other)))
