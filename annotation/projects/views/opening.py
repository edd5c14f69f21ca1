"""Pages that list, pause and resume projects, and open one beside another."""

from django.contrib.auth.decorators import login_required, permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from annotation import selectors
from annotation.access import managed_project, may_open
from annotation.budget.population_sheets import membership_like
from annotation.models import Role
from annotation.people.identity import person_of
from annotation.people.views import task_of
from annotation.projects.forms.configuration import can_stand_beside_random, draft_of_random
from annotation.projects.selectors import project_cards
from annotation.projects.services import drafts, opening


@login_required
def project_list(request: HttpRequest) -> HttpResponse:
    """Every project the person takes part in; who came by a crowd link has one task, and goes to that."""
    task = task_of(request)
    if task is not None:
        return redirect("annotation:label", slug=task.slug)
    closed = "closed" in request.GET
    cards = project_cards(user=request.user, closed=closed)
    context = {"cards": cards, "may_open": may_open(request), "closed": closed}
    return render(request, "annotation/projects/projects.html", context)


@login_required
def project(request: HttpRequest, slug: str) -> HttpResponse:
    found = get_object_or_404(selectors.projects_of(request.user), slug=slug)
    if selectors.projects_of(request.user, roles=(Role.MANAGER, Role.ENGINEER)).filter(pk=found.pk).exists():
        return redirect("learner:overview", slug=slug)
    if not selectors.projects_of(request.user, roles=(Role.ANNOTATOR,)).filter(pk=found.pk).exists():
        return redirect("annotation:review", slug=slug)
    return redirect("annotation:label", slug=slug)


@login_required
@require_POST
def set_state(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    change = opening.pause_project if request.POST.get("state") == "paused" else opening.resume_project
    change(project=project)
    return redirect("annotation:project", slug=slug)


@require_POST
@login_required
@permission_required("annotation.add_project", raise_exception=True)
def open_beside(request: HttpRequest, slug: str) -> HttpResponse:
    project, person = managed_project(request, slug), person_of(request)
    if not can_stand_beside_random(project):
        raise Http404
    # What is under one limit beside it stays under it: whose records are in both loses the sum.
    typed = draft_of_random(project) | membership_like(project, person)
    draft = drafts.start_draft(owner=person, preset=project.preset, typed=typed, beside=project)
    return redirect("annotation:opening", draft.pk)
