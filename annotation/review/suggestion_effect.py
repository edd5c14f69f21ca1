"""Effect of suggestions on answers, measured against questions that a coin left without one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from annotation.intervals import wilson_interval
from annotation.models import Label, Project, QueryState
from annotation.questions.selectors import counted

# Somebody who went away with a question open comes back to it; nobody thinks about one for longer.
LONGEST_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Group:
    """Questions asked with, or without, a suggestion; `differing` have a first answer of another class than the
    model's.
    """

    questions: int
    differing: int
    minutes: float | None
    minutes_low: float | None
    minutes_high: float | None

    @property
    def percent(self) -> float:
        return 100 * self.differing / self.questions if self.questions else 0.0

    @property
    def percent_low(self) -> float:
        return 100 * wilson_interval(self.differing, self.questions)[0]

    @property
    def percent_high(self) -> float:
        return 100 * wilson_interval(self.differing, self.questions)[1]


@dataclass(frozen=True, slots=True)
class Effect:
    shown: Group
    blind: Group
    anchoring: float
    anchoring_low: float
    anchoring_high: float


def effect_of(project: Project) -> Effect | None:
    # Answers to one question hang together, so only its first counts; a machine is shown no suggestion.
    first = Label.objects.filter(query__project=project, query__emptied=False, supersedes=None, annotator__machine=None)
    first = first.filter(query__suggested__isnull=False).exclude(query__state=QueryState.GOLD)
    rows = [
        (shown, counted(project, choice) != counted(project, suggested), since, until)
        for shown, choice, suggested, since, until in first.order_by("query", "pk")
        .distinct("query")
        .values_list("query__suggestion_shown", "choice", "query__suggested", "assignment__created_at", "created_at")
        if choice is not None and suggested is not None
    ]
    if not rows:
        return None
    groups = [
        group_of([(differs, _seconds(since, until)) for was, differs, since, until in rows if was is shown])
        for shown in (True, False)
    ]
    return compared(*groups)


def _seconds(since: datetime, until: datetime) -> float:
    return min((until - since).total_seconds(), LONGEST_SECONDS)


def group_of(answers: Sequence[tuple[bool, float]]) -> Group:
    minutes = sorted(seconds / 60 for _differs, seconds in answers)
    low, high = median_interval(minutes)
    middle = None if not minutes else (minutes[(len(minutes) - 1) // 2] + minutes[len(minutes) // 2]) / 2
    return Group(len(answers), sum(differs for differs, _seconds in answers), middle, low, high)


def median_interval(ordered: Sequence[float]) -> tuple[float | None, float | None]:
    """Return a 95 % interval of the median of increasing values that assumes no law.

    The j-th smallest and largest value, j the largest number with which at most 2.5 % of the draws of Bin(n, 1/2) stay
    below j; None for both where even the extremes hold the median less often.
    """
    from scipy.stats import binom  # noqa: PLC0415  # slow import

    n = len(ordered)
    place = int(binom.ppf(0.025, n, 0.5)) if n else 0
    return (None, None) if place == 0 else (ordered[place - 1], ordered[n - place])


def compared(shown: Group, blind: Group) -> Effect:
    """Return both groups with the difference of their shares and its 95 % interval.

    References
    ----------
    .. [1] Newcombe, "Interval estimation for the difference between independent proportions", 1998, method 10.
    """
    p, q = blind.percent, shown.percent
    low = p - q - math.hypot(p - blind.percent_low, shown.percent_high - q)
    high = p - q + math.hypot(blind.percent_high - p, q - shown.percent_low)
    return Effect(shown, blind, p - q, low, high)
