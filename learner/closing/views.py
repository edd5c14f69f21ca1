"""Putting a project away, and deleting it: what that means, and what stays."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from annotation.access import managed_project
from annotation.models import Project, ProjectState
from annotation.models.deletions import Deletion
from annotation.people.identity import person_of
from annotation.projects.services import lifecycle
from learner.closing.forms import DeletionForm
from learner.closing.selectors import what_stays


@login_required
def closing(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what archiving and deleting do; of a deleted project, what is left."""
    project = managed_project(request, slug, closed_too=True)
    return _page(request, project, DeletionForm(project=project))


@login_required
@require_POST
def set_archived(request: HttpRequest, slug: str) -> HttpResponse:
    """Put a project away, or take it out again."""
    project = managed_project(request, slug, closed_too=True)
    if request.POST.get("archived") == "yes":
        lifecycle.archive_project(project=project)
        messages.success(request, _("The project is archived."))
    else:
        lifecycle.unarchive_project(project=project)
        messages.success(request, _("The project is out of the archive and paused."))
    return redirect("learner:closing", slug=slug)


@login_required
@require_POST
def delete_project(request: HttpRequest, slug: str) -> HttpResponse:
    """Delete a project whose short name was typed."""
    project = managed_project(request, slug, closed_too=True)
    form = DeletionForm(request.POST, project=project)
    if not form.is_valid():
        return _page(request, project, form, status=422)
    lifecycle.request_deletion(
        project=project,
        typed=form.cleaned_data["typed"],
        keep_releases=form.cleaned_data["releases"] == "keep",
        actor=person_of(request).get_username(),
    )
    messages.success(request, _("The project is deleted; this page shows when everything is erased."))
    return redirect("learner:closing", slug=slug)


def _page(request: HttpRequest, project: Project, form: DeletionForm, *, status: int = 200) -> HttpResponse:
    context = {
        "project": project,
        "form": form,
        "archived": project.state == ProjectState.ARCHIVED,
        "deletion": Deletion.objects.filter(project=project).select_related("job").first(),
        **what_stays(project),
    }
    return render(request, "learner/closing/closing.html", context, status=status)
