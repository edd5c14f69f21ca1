"""Effect of suggestions on answers, measured against questions that a coin left without one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from annotation.intervals import wilson_interval
from annotation.models import Project
from annotation.questions.selectors.answers import counting_places

# Somebody who went away with a question open comes back to it; nobody thinks about one for longer.
LONGEST_SECONDS = 600
FIRST_ANSWERS = """
SELECT DISTINCT ON (query.id) query.suggestion_shown, coalesce((%(counts_as)s::int[])[label.choice + 1], label.choice)
           <> coalesce((%(counts_as)s::int[])[query.suggested + 1], query.suggested),
       assignment.created_at, label.created_at
FROM annotation_query query
JOIN annotation_label label ON label.query_id = query.id AND label.supersedes_id IS NULL
JOIN annotation_assignment assignment ON assignment.id = label.assignment_id
WHERE query.project_id = %(project)s AND query.suggested IS NOT NULL AND query.state <> 'gold' AND NOT query.emptied
  AND NOT EXISTS (SELECT 1 FROM annotation_machineannotator machine WHERE machine.user_id = label.annotator_id)
ORDER BY query.id, label.id
"""


@dataclass(frozen=True, slots=True)
class Group:
    """Questions that were asked with, or without, a suggestion.

    Attributes
    ----------
    questions, differing : int
        Questions with an answer, and those whose first answer is another class than the model's.
    minutes : float or None
        Median of the minutes from the question to its first answer; None where there is no answer.
    minutes_low, minutes_high : float or None
        95 % interval of that median from the order of the times; None where there are too few.
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
    with connection.cursor() as cursor:
        cursor.execute(FIRST_ANSWERS, {"project": project.pk, "counts_as": list(counting_places(project))})
        rows = cursor.fetchall()
    if not rows:
        return None
    groups = [
        group_of([(bool(differs), _seconds(since, until)) for was, differs, since, until in rows if was is shown])
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
    """Return a 95 % interval of the median that assumes no law.

    Parameters
    ----------
    ordered : sequence of float
        Independent values in increasing order.

    Returns
    -------
    tuple of float or None
        The j-th smallest and the j-th largest value, j the largest number with which at most 2.5 % of the draws of
        Bin(n, 1/2) stay below j; None for both where even the extremes hold the median less often.
    """
    n, below, place = len(ordered), 0.0, 0
    while place < n:
        below += _chance(n, place)
        if below > 0.025:
            break
        place += 1
    return (None, None) if place == 0 else (ordered[place - 1], ordered[n - place])


def _chance(n: int, place: int) -> float:
    logs = math.lgamma(n + 1) - math.lgamma(place + 1) - math.lgamma(n - place + 1) - n * math.log(2)
    return math.exp(logs)


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
