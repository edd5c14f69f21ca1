"""Limits of a project on answers, in number and in money; this is no privacy budget."""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from django.db.models import Count, Min, Sum
from django.db.models.functions import Greatest
from django.utils import timezone

from annotation.models import Label, Project, Query, QueryState


@dataclass(frozen=True, slots=True)
class LabelBudget:
    limit: int | None
    asked: int
    given: int
    price: Decimal | None
    currency: str
    money_limit: Decimal | None = None

    @property
    def left(self) -> int | None:
        return None if self.limit is None else max(0, self.limit - self.asked)

    @property
    def spent(self) -> Decimal | None:
        return None if self.price is None else self.given * self.price

    @property
    def money_left(self) -> Decimal | None:
        """Money that is neither spent nor promised to a question; None without a limit in money."""
        if self.money_limit is None or self.price is None:
            return None
        return max(Decimal(0), self.money_limit - self.asked * self.price)


def label_budget(project: Project) -> LabelBudget:
    given = Label.objects.filter(query__project=project, superseded_at=None).count()
    return LabelBudget(
        limit=answers_limit(project),
        asked=answers_asked(project),
        given=given,
        price=project.price_per_label,
        currency=project.currency,
        money_limit=project.money_limit,
    )


def answers_limit(project: Project) -> int | None:
    limits = [] if project.labels_limit is None else [project.labels_limit]
    if project.money_limit is not None and project.price_per_label:
        limits.append(int(project.money_limit // project.price_per_label))
    return min(limits, default=None)


def answers_asked(project: Project) -> int:
    """Count the answers that came or are still wanted: every question that was opened takes as many as its overlap."""
    return _answers(project, at_least=1)


def _answers(project: Project, *, at_least: int) -> int:
    opened = Query.objects.filter(project=project).exclude(state__in=(QueryState.UNASKED, QueryState.GOLD))
    # A check takes as many answers as it gets, and they are paid like the others.
    checks = Label.objects.filter(query__project=project, query__state=QueryState.GOLD, superseded_at=None).count()
    wanted = opened.aggregate(answers=Sum(Greatest("overlap", at_least), default=0))
    return int(wanted["answers"]) + checks


def questions_left(project: Project) -> int | None:
    """Return how many more questions the budget pays for in full, None where there is no limit.

    A question counts with all answers it may take: the number shows, so it must not depend on disagreement.
    """
    limit = answers_limit(project)
    if limit is None:
        return None
    # One answer alone always agrees with itself.
    most = project.overlap_limit if project.overlap > 1 else None
    each = max(project.overlap, most or 0)
    return max(0, limit - _answers(project, at_least=each)) // each


# Long enough to hold a weekend, short enough to follow a change.
LOOKED_BACK: Final = timedelta(days=7)
# An hour of many answers says nothing about a day; until a day has gone by, what was answered is the first day's.
SHORTEST: Final = timedelta(days=1)
# Beyond ten years a date says nothing.
FARTHEST_DAYS: Final = 3650


@dataclass(frozen=True, slots=True)
class Forecast:
    per_day: float
    ends_on: datetime | None
    days: int | None
    rounds: int | None
    questions: int | None
    cost_per_week: Decimal | None


def label_budget_forecast(project: Project) -> Forecast:
    now = timezone.now()
    budget = label_budget(project)
    answers = Label.objects.filter(query__project=project, superseded_at=None, created_at__gt=now - LOOKED_BACK)
    lately = answers.aggregate(count=Count("pk"), first=Min("created_at"))
    per_day = 0.0
    if lately["count"]:
        # A project that began lately is not as slow as a week of it would be.
        began_before = Label.objects.filter(query__project=project, created_at__lte=now - LOOKED_BACK).exists()
        span = LOOKED_BACK if began_before else max(SHORTEST, now - lately["first"])
        per_day = lately["count"] / (span / timedelta(days=1))
    left = None if budget.limit is None else max(0, budget.limit - budget.given)
    days = None if left is None or not per_day else left / per_day
    within = days is not None and days <= FARTHEST_DAYS
    questions = questions_left(project)
    return Forecast(
        per_day=per_day,
        ends_on=now + timedelta(days=days) if days is not None and within else None,
        days=math.floor(days) if days is not None and within else None,
        rounds=None if questions is None else math.ceil(questions / project.round_size),
        questions=questions,
        cost_per_week=None if budget.price is None else budget.price * Decimal(repr(round(per_day * 7, 6))),
    )
