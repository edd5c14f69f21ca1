"""Forecast of when the label budget runs out."""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from django.db.models import Count, Min
from django.utils import timezone

from annotation.budget.label_budget import label_budget, questions_left
from annotation.models import Label, Project

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


def label_budget_forecast(project: Project, *, now: datetime | None = None) -> Forecast:
    now = now or timezone.now()
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
