"""The REST route that opens a project which asks at random beside another one, for the same epsilon."""

from typing import Any

from django.http import Http404, HttpRequest
from ninja import Field, Schema
from ninja.errors import HttpError

from annotation.access import may_open
from annotation.budget.forms import MembershipForm
from annotation.budget.population_sheets import membership_like
from annotation.choices.presets import PRESETS
from annotation.models import Role
from annotation.people.identity import note_about, person_of
from annotation.projects.forms.random_comparison import can_stand_beside_random, draft_of_random
from annotation.projects.forms.wizard import draft_form, sharing_terms
from annotation.projects.services import opening
from annotation.work.rest import ProjectOut, RoomRouter, checked, project_for, require_scope
from annotation.work.services.tokens import Scope

router = RoomRouter()


class BesideIn(Schema):
    """What the new project is called; after the other one if nothing is said."""

    name: str | None = Field(None, max_length=120)


@router.write(
    "projects/{slug:slug}/beside",
    response={201: ProjectOut},
    summary="Open a project with the same settings and random choice, and show its releases beside this one's",
)
def open_beside(request: HttpRequest, slug: str, body: BesideIn) -> Any:
    require_scope(request, Scope.PROJECTS_WRITE)
    if not may_open(request):
        raise HttpError(403, "Your account may not open projects.")
    project, person = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER), person_of(request)
    if not can_stand_beside_random(project):
        raise Http404
    # What is under one limit beside it stays under it: whose records are in both loses the sum.
    draft = draft_of_random(project) | membership_like(project, person)
    if body.name is not None:
        draft["name"] = body.name
    form = draft_form(PRESETS[project.preset], draft)
    checked(form)
    membership = checked(MembershipForm(draft, person=person, terms=sharing_terms(form)))
    opened = opening.create_project(preset=project.preset, owner=person, **form.project_values(), **membership)
    opening.compare_with(project=project, other=opened)
    note_about(request, opened.pk)
    return opened
