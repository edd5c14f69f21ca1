"""What routes of every room share: the token that asks, its scopes, and the project it asks about."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.urls import reverse
from ninja import Field, Schema
from ninja.security import HttpBearer

from annotation import access, selectors
from annotation.choices.merged_classes import merged_names
from annotation.models import Assignment, Project, Role
from annotation.rest.routing import RoomRouter
from annotation.tokens import services as tokens
from annotation.tokens.services import Scope
from privacy.wording import Message, as_message

router = RoomRouter()


class BearerToken(HttpBearer):
    """Authenticate by a token made on the tokens page; its person becomes `request.user`."""

    def authenticate(self, request: HttpRequest, token: str) -> Any:
        found = tokens.use_token(secret=token, limit=settings.API_REQUESTS_PER_MINUTE)
        if found is not None:
            request.user = found.user
            # Only where the request changes something that the history tells with a name.
            if (act_as := getattr(request, "act_as", None)) is not None:
                act_as(found.user.get_username())
        return found


def require_scope(request: HttpRequest, scope: Scope) -> None:
    """Refuse a token that was not made for this."""
    if scope not in request.auth.scopes:  # type: ignore[attr-defined]
        raise PermissionDenied(lacking_words(request, scope))


def lacking_words(request: HttpRequest, scope: Scope) -> Message:
    """Say which scope a token lacks, and where its person makes one that has it."""
    return as_message(
        "This token lacks the scope {scope}. Make one that has it at {address}.",
        scope=scope.value,
        address=request.build_absolute_uri(reverse("annotation:tokens")),
    )


class ProjectOut(Schema):
    """A project as its members see it."""

    slug: str
    name: str
    oracle: str
    data_kind: str
    classes: list[str]
    merged: dict[str, str] = Field({}, description="Classes that count as another one since, each with that one.")
    state: str
    overlap: int

    @staticmethod
    def resolve_merged(project: Project) -> dict[str, str]:
        return merged_names(project.merged_classes)


class MostIn(Schema):
    """What a program is ready to have charged by what it asks for."""

    most_epsilon: float | None = Field(None, ge=0, description="Refuse if what is charged is more.")


def own_assignment(request: HttpRequest, assignment_id: UUID, scope: Scope) -> Assignment:
    """Return a turn of the token's person at a question, where the token has the scope."""
    require_scope(request, scope)
    return get_object_or_404(selectors.assignments_of(request.user), pk=assignment_id)


def project_for(request: HttpRequest, slug: str, scope: Scope, *roles: Role) -> Project:
    """Return the project if the token has the scope and its person one of the roles; a closed one can only be read."""
    require_scope(request, scope)
    project = get_object_or_404(selectors.projects_of(request.user, roles=roles), slug=slug)
    if request.method != "GET":
        access.refuse_if_closed(project)
    return project
