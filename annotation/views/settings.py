"""A project's configuration: what is fixed, what may change, what changed, and who did what."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from annotation import history
from annotation.services import projects
from annotation.settings_forms import SettingsForm
from annotation.views.projects import managed_project

SHOWN = 100


@login_required
def settings(request: HttpRequest, slug: str) -> HttpResponse:
    """Change what touches no guarantee; read the rest, and the history of both."""
    project = managed_project(request, slug)
    form = SettingsForm(request.POST or None, project=project)
    if request.method == "POST" and form.is_valid():
        projects.set_description(project=project, **form.cleaned_data)
        messages.success(request, _("Saved."))
        return redirect("annotation:settings", slug=slug)
    context = {
        "project": project,
        "form": form,
        "is_charged": history.is_charged(project),
        "fixed": history.fixed_settings(project),
        "changes": project.changes.order_by("-pk")[:SHOWN],
        "actions": project.actions.order_by("-pk")[:SHOWN],
    }
    return render(request, "annotation/settings.html", context, status=422 if form.errors else 200)
