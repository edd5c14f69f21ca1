"""Selectors of what waits for review and for whom."""

from dataclasses import dataclass

from django.db.models import Case, Count, Exists, F, IntegerField, Max, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Now

from annotation import selectors
from annotation.choices.quality_checks import QualityChecks
from annotation.choices.randomizers import randomizes
from annotation.intervals import wilson_interval
from annotation.models import Consensus, Label, Membership, Project, Query, QueryState, Report, ReportKind, Role
from annotation.models.quality import Review, ReviewState
from annotation.questions.selectors.answers import agreed_on, answer_name, counted
from annotation.selectors import Person

DECISIONS = (ReviewState.SETTLED, ReviewState.RETURNED, ReviewState.SET_ASIDE, ReviewState.SKIPPED)


def waiting_for_review(project: Project) -> QuerySet[Query]:
    return _undecided(project).filter(~Exists(_returned()))


def _undecided(project: Project) -> QuerySet[Query]:
    if randomizes(project.settings):
        return Query.objects.none()
    wanted = Q(state__in=(QueryState.DISPUTED, QueryState.IN_REVIEW))
    reviewed = QualityChecks.of(project.settings).reviewed
    if reviewed != "disputed":
        free = Q(consensus__pk__gt=project.labels_used_through, consensus__settled_by=None)
        differ = Q() if reviewed == "all" else Q(consensus__agreeing__lt=F("consensus__votes"))
        wanted |= Q(state=QueryState.CLOSED, emptied=False) & free & differ
    return Query.objects.filter(wanted, project=project)


def _returned() -> QuerySet[Report]:
    return Report.objects.filter(query=OuterRef("pk"), kind=ReportKind.RETURNED, resolved_at=None)


def queue_of(project: Project, person: Person) -> QuerySet[Query]:
    """Return what a person may review: disputed first, then drawn, skipped last; never what they answered."""
    if is_manager(project, person):
        waiting = _undecided(project)
    else:
        waiting = waiting_for_review(project).exclude(
            Exists(Label.objects.filter(query=OuterRef("pk"), annotator=person.pk))
        )
    own = Review.objects.filter(query=OuterRef("pk"), reviewer=person.pk, state=ReviewState.SKIPPED).order_by()
    skipped = own.values("query").annotate(last=Max("finished_at")).values("last")
    waits = (When(state=QueryState.DISPUTED, then=Value(0)), When(state=QueryState.IN_REVIEW, then=Value(1)))
    disputed = Case(*waits, default=Value(2), output_field=IntegerField())
    return waiting.annotate(skipped_at=Subquery(skipped), returned=Exists(_returned())).order_by(
        "returned", F("skipped_at").asc(nulls_first=True), disputed, "priority", "pk"
    )


def agreed_choice(query: Query) -> int | None:
    if query.state == QueryState.IN_REVIEW:
        given = Label.objects.filter(query=query, superseded_at=None, choice__isnull=False)
        agreement = agreed_on(
            query.project, [choice for choice in given.values_list("choice", flat=True) if choice is not None]
        )
        return None if agreement is None else counted(query.project, agreement.choice)
    found = Consensus.objects.filter(query=query).values_list("choice", flat=True).first()
    return None if found is None else counted(query.project, found)


def is_manager(project: Project, person: Person) -> bool:
    return Membership.objects.filter(project=project, user=person.pk, role=Role.MANAGER).exists()


def undoable_review(project: Project, person: Person) -> Review | None:
    lately = Review.objects.filter(project=project, reviewer=person.pk, state__in=DECISIONS)
    return lately.filter(finished_at__gte=Now() - selectors.UNDO_WINDOW).order_by("-finished_at", "-pk").first()


@dataclass(frozen=True, slots=True)
class ReviewProgress:
    reviewed: int
    waiting: int

    @property
    def together(self) -> int:
        return self.reviewed + self.waiting


def progress_of(project: Project) -> ReviewProgress:
    decided = Consensus.objects.filter(project=project, settled_by__isnull=False)
    return ReviewProgress(decided.count(), waiting_for_review(project).count())


@dataclass(frozen=True, slots=True)
class DrawnReviews:
    waiting: int
    decided: int
    changed: int

    @property
    def interval(self) -> str:
        low, high = wilson_interval(self.changed, self.decided)
        return f"{100 * low:.0f}-{100 * high:.0f} %"


def drawn_reviews(project: Project) -> DrawnReviews | None:
    drawn = Query.objects.filter(project=project, drawn_for_review=True)
    if not project.review_share and not drawn.exists():
        return None
    found = Consensus.objects.filter(query__in=drawn, changed__isnull=False).aggregate(
        decided=Count("pk"), changed=Count("pk", filter=Q(changed=True))
    )
    return DrawnReviews(waiting=drawn.filter(state=QueryState.IN_REVIEW).count(), **found)


def counted_votes(query: Query) -> list[tuple[str, int]]:
    rows = Label.objects.filter(query=query, superseded_at=None).values_list("choice").annotate(n=Count("pk"))
    return [(answer_name(query.project, choice), n) for choice, n in sorted(rows, key=lambda row: (-row[1], row[0]))]
