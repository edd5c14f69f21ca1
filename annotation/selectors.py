"""What is there to read, and who may see what of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Exists, F, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone

from annotation.models import Assignment, AssignmentState, DataKind, Membership, Project, Query, QueryState, Role
from privacy.selectors import guarantee

Person = AbstractBaseUser | AnonymousUser
UNDO_WINDOW = timedelta(minutes=10)
# Counting stops here: the page says "more than", and a queue of a million costs no more than one of a hundred.
WAITING_SHOWN = 100


class CountOf(Subquery):
    """The number of rows of a subquery, which may be sliced."""

    template = "(SELECT count(*) FROM (%(subquery)s) counted)"
    output_field = IntegerField()


def projects_of(user: Person, *, roles: Sequence[str] = ()) -> QuerySet[Project]:
    """Return the projects the person takes part in, with one of `roles` if any are named."""
    mine = Membership.objects.filter(project=OuterRef("pk"), user=user.pk)
    if roles:
        mine = mine.filter(role__in=roles)
    return Project.objects.filter(Exists(mine))


def assignments_of(user: Person) -> QuerySet[Assignment]:
    """Return the person's own assignments in projects where they still are an annotator."""
    still = Membership.objects.filter(project=OuterRef("project"), user=user.pk, role=Role.ANNOTATOR)
    return Assignment.objects.filter(Exists(still), annotator=user.pk).select_related("project")


def pace_of(user: Person, *, project: str) -> dict[str, CountOf]:
    """Return annotations `done_today`, the person's own answers, and `waiting`, free questions as far as counted."""
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    done = Assignment.objects.filter(
        annotator=user.pk, project=OuterRef(project), state=AssignmentState.LABELLED, finished_at__gte=midnight
    )
    free = Query.objects.filter(project=OuterRef(project), state=QueryState.OPEN, open_slots__gt=0)
    return {
        "done_today": CountOf(done.values("pk")),
        "waiting": CountOf(free.order_by("priority", "pk").values("pk")[: WAITING_SHOWN + 1]),
    }


def desks_of(user: Person) -> QuerySet[Project]:
    """Return the person's projects with what their label page shows around the question, in one statement."""
    annotator = Membership.objects.filter(project=OuterRef("pk"), user=user.pk, role=Role.ANNOTATOR)
    undoable = undoable_assignments(user).filter(project=OuterRef("pk"), labels__superseded_at=None)
    return projects_of(user).annotate(
        is_annotator=Exists(annotator),
        last_choice=Subquery(undoable.values("labels__choice")[:1]),
        **pace_of(user, project="pk"),
    )


def undoable_assignments(user: Person) -> QuerySet[Assignment]:
    """Return the person's answered assignments of the last minutes that no training has used, newest first."""
    used = Q(query__consensus__pk__lte=F("project__labels_used_through"))
    answered = Assignment.objects.filter(
        annotator=user.pk, state=AssignmentState.LABELLED, finished_at__gte=Now() - UNDO_WINDOW
    )
    return answered.exclude(used).order_by("-finished_at")


@dataclass(frozen=True, slots=True)
class Question:
    """What an annotator sees of a question: one of text, fields and image, by the project's kind of data."""

    text: str | None = None
    fields: Mapping[str, Any] | None = None
    image_url: str | None = None


def question_of(assignment: Assignment) -> Question:
    """Return what the assignment shows; load it with `query__record`, else each part is a query of its own."""
    query = assignment.query
    # A question that came through the gate has no record to look at, whatever the project says.
    if query.record is None:
        return Question(text=query.text)
    kind = assignment.project.data_kind
    if kind == DataKind.IMAGE:
        return Question(image_url=reverse("annotation:question_image", args=(assignment.pk,)))
    if kind == DataKind.TABLE:
        payload = query.record.payload or {}
        names = [column["name"] for column in assignment.project.columns]
        return Question(fields={name: payload.get(name) for name in names})
    return Question(text=query.record.text)


def budget_is_spent(project: Project) -> bool:
    """Say whether the account that pays for training could not pay for one more release."""
    left = guarantee(project.labels_account or project.pool_account)
    if left.rho_limit is not None:
        # Pure epsilon costs at most epsilon^2 / 2 of rho.
        return left.rho_limit - left.rho_spent < project.training_epsilon**2 / 2
    return left.epsilon_left < project.training_epsilon
