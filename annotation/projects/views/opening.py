"""Pages that list, pause and resume projects."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from annotation import selectors
from annotation.access import managed_project, may_open
from annotation.models import Role
from annotation.people.views import task_of
from annotation.projects.selectors import project_cards
from annotation.projects.services import opening


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
