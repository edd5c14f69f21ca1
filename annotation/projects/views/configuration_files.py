"""Configurations that travel: a project's as a file, a new project from a file or a copy, two beside each other."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from annotation import selectors
from annotation.access import managed_project
from annotation.errors import InvalidConfiguration
from annotation.models import Project, Role
from annotation.people.identity import note_nothing
from annotation.projects.forms.configuration_file import LARGEST, copied_draft, file_of, parse_file, setting_differences
from annotation.projects.forms.setting_names import setting_name
from annotation.projects.forms.wizard import WizardStep
from annotation.projects.settings_words import setting_value
from annotation.projects.views.wizard import keep_draft
from annotation.wording import localized


class ConfigurationFileForm(forms.Form):
    """A file to open a project from."""

    file = forms.FileField(max_length=200, allow_empty_file=True)


@require_GET
@login_required
def download(request: HttpRequest, slug: str) -> HttpResponse:
    """A project's configuration as a file."""
    project = managed_project(request, slug)
    response = JsonResponse(file_of(project), json_dumps_params={"indent": 2, "ensure_ascii": False})
    response["Content-Disposition"] = f'attachment; filename="{project.slug}.configuration.json"'
    return response


@require_POST
@login_required
@permission_required("annotation.add_project", raise_exception=True)
def copy(request: HttpRequest, slug: str) -> HttpResponse:
    """Fill the steps of a new project with a project's settings, to look over and open."""
    note_nothing(request)
    project = managed_project(request, slug, closed_too=True)
    name = _("%(name)s, copy") % {"name": project.name}
    keep_draft(request, project.preset, copied_draft(project, name))
    messages.info(request, _("These are the settings of %(name)s. Nothing is opened yet.") % {"name": project.name})
    return redirect("annotation:wizard", preset=project.preset, step=WizardStep.CHECK)


@require_POST
@login_required
@permission_required("annotation.add_project", raise_exception=True)
def from_file(request: HttpRequest) -> HttpResponse:
    """Fill the steps of a new project from a file; what is wrong with it is said, and nothing is kept of it."""
    note_nothing(request)
    form = ConfigurationFileForm(request.POST, request.FILES)
    if not form.is_valid():
        messages.error(request, _("Choose a file first."))
        return redirect("annotation:choose_preset")
    try:
        file = parse_file(form.cleaned_data["file"].read(LARGEST + 1))
    except InvalidConfiguration as error:
        messages.error(request, localized(str(error)))
        return redirect("annotation:choose_preset")
    keep_draft(request, file.preset.key, file.draft)
    messages.info(request, _("These are the settings of the file. Nothing is opened yet."))
    return redirect("annotation:wizard", preset=file.preset.key, step=WizardStep.CHECK)


@require_GET
@login_required
def compare(request: HttpRequest, slug: str) -> HttpResponse:
    """In which settings two projects differ."""
    project = managed_project(request, slug)
    mine = selectors.projects_of(request.user, roles=(Role.MANAGER,)).exclude(pk=project.pk).order_by("name")
    other = get_object_or_404(mine, slug=request.GET["with"]) if request.GET.get("with") else None
    context: dict[str, Any] = {"project": project, "other": other, "others": mine}
    if other is not None:
        context["differences"] = _named_differences(project, other)
    return render(request, "annotation/projects/compare_configurations.html", context)


def _named_differences(project: Project, other: Project) -> list[tuple[str, str, str]]:
    found = setting_differences(project, other)
    if project.preset != other.preset:
        found = [("preset", project.preset, other.preset), *found]
    return [(setting_name(name), setting_value(name, one), setting_value(name, two)) for name, one, two in found]
