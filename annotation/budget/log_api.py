"""REST route of the log: who did what in a project."""

from datetime import date, datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import override
from ninja import Field, Query

from annotation.budget.action_words import action_sentence
from annotation.budget.history import actions_in
from annotation.models import Role
from annotation.work.reads import Answer, Reads
from annotation.work.rest import Page, RoomRouter, page_of, project_for
from annotation.work.services.tokens import Scope

router = RoomRouter()


class LogIn(Page):
    """Whose lines, of what, from when to when, by days of the site's zone; what is absent narrows nothing."""

    who: str = Field("", max_length=150)
    route: str = Field("", max_length=80, description="As `route` of a line.")
    since: date | None = None
    until: date | None = Field(None, description="The last day, included.")


class ActionOut(Answer, reads=Reads.MANAGED):
    """Something that a person did by a page, a route or a command; nobody is named where a period did it."""

    when: datetime
    who: str
    what: str = Field(description="In English, with the numbers of `target`.")
    route: str
    target: dict[str, int] = Field(description="Numbers of what it was done to.")


@router.pages("projects/{slug:slug}/log", response=list[ActionOut], summary="Who did what in a project, newest first")
def list_actions(request: HttpRequest, response: HttpResponse, slug: str, wanted: Query[LogIn]) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER)
    found = actions_in(project, actor=wanted.who, route=wanted.route, since=wanted.since, until=wanted.until)
    with override("en"):
        return [
            {
                "when": action.created_at,
                "who": action.actor,
                "what": action_sentence(action),
                "route": action.route,
                "target": action.target,
            }
            for action in page_of(found, wanted, request=request, response=response)
        ]
