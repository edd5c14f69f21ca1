"""What is there to read, and who may see what of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Exists, OuterRef, QuerySet
from django.urls import reverse

from annotation.models import Assignment, DataKind, Membership, Project, Role

Person = AbstractBaseUser | AnonymousUser


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
    account = project.labels_account or project.pool_account
    last = account.entries.order_by("-sequence").first()
    if account.rho_limit_nano is not None:
        rho_needed = project.training_epsilon**2 / 2 * 1e9
        return account.rho_limit_nano - (last.rho_spent_nano if last else 0) < rho_needed
    return account.epsilon_limit_nano - (last.epsilon_spent_nano if last else 0) < project.training_epsilon * 1e9
