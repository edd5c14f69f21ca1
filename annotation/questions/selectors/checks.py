"""Selectors of hidden checks and how people answer them."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet

from annotation.intervals import wilson_interval
from annotation.models import (
    Label,
    Membership,
    Project,
    QueryState,
    Role,
)
from annotation.models.quality import GoldQuery
from annotation.questions.selectors.answers import counts_equal


@dataclass(frozen=True, slots=True)
class Checks:
    right: int
    answered: int

    @property
    def accuracy(self) -> float | None:
        return self.right / self.answered if self.answered else None

    @property
    def low(self) -> float:
        return wilson_interval(self.right, self.answered)[0]

    @property
    def high(self) -> float:
        return wilson_interval(self.right, self.answered)[1]

    @property
    def percent(self) -> int | None:
        return None if self.accuracy is None else round(100 * self.accuracy)

    @property
    def interval(self) -> str:
        return f"{100 * self.low:.0f}-{100 * self.high:.0f} %"


def checks_of(*, project: Project, user_id: int) -> Checks:
    """Return the checks of one person that count: none from before a manager let them go on."""
    return counted_checks(
        project, answered_checks(project).filter(annotator=user_id), judged_from(project).get(user_id)
    )


def counted_checks(project: Project, labels: QuerySet[Label], since: Any) -> Checks:
    rows = labels if since is None else labels.filter(created_at__gt=since)
    found = rows.aggregate(answered=Count("pk"), right=Count("pk", filter=answered_rightly(project)))
    return Checks(right=found["right"], answered=found["answered"])


def answered_rightly(project: Project) -> Q:
    return counts_equal(project, "choice", "query__gold__choice")


def answered_checks(project: Project) -> QuerySet[Label]:
    return Label.objects.filter(
        query__project=project, query__state=QueryState.GOLD, query__gold__retired_at=None, superseded_at=None
    )


def checks_in_use(project: Project) -> QuerySet[Any]:
    counted = Q(query__labels__superseded_at=None, query__labels__isnull=False)
    wrong = counted & ~counts_equal(project, "query__labels__choice", "choice")
    return (
        GoldQuery.objects.filter(query__project=project, retired_at=None)
        .annotate(answered=Count("query__labels", filter=counted), wrong=Count("query__labels", filter=wrong))
        .select_related("query__project", "query__record")
        .order_by("-wrong", "-answered", "pk")
    )


def judged_from(project: Project) -> dict[int, Any]:
    rows = Membership.objects.filter(project=project, role=Role.ANNOTATOR).exclude(judged_from=None)
    return dict(rows.values_list("user", "judged_from"))
