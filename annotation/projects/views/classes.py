"""The classes of a project as they stand, a further one while people work, and one that counts as another."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from annotation.access import managed_project
from annotation.choices.class_looks import looks_of
from annotation.choices.merged_classes import merged_names
from annotation.errors import ConfigurationFrozen, InvalidConfiguration
from annotation.models import Project
from annotation.people.identity import person_of
from annotation.projects.forms.classes import COLOUR_NAMES, FurtherClassForm, MergeForm
from annotation.projects.services import classes as project_classes
from annotation.questions.class_list import listed_classes
from annotation.wording import localized


@login_required
def classes(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the classes; add one, as far as the answers so far still mean what they meant."""
    project = managed_project(request, slug)
    form = FurtherClassForm(request.POST or None, project=project)
    if request.method == "POST" and form.is_valid() and _added(request, project, form):
        messages.success(request, _("Added. Annotators see it from their next question on."))
        return redirect("annotation:classes", slug=slug)
    rule = project_classes.hindrance_of(project)
    context = {
        "project": project,
        "form": form,
        "rows": _rows(project),
        "hindrance": localized(rule) if rule else "",
        "may_merge": not project_classes.merge_hindrance_of(project),
    }
    return render(request, "annotation/projects/classes.html", context, status=422 if form.errors else 200)


@login_required
def merge_class(request: HttpRequest, slug: str) -> HttpResponse:
    """Let a class count as another one from now on."""
    project = managed_project(request, slug)
    form = MergeForm(request.POST or None, project=project)
    if request.method == "POST" and form.is_valid() and _merged(project, form):
        messages.success(request, _("Merged. It is not offered any more, and its answers count as the other."))
        return redirect("annotation:classes", slug=slug)
    rule = project_classes.merge_hindrance_of(project)
    context = {"project": project, "form": form, "hindrance": localized(rule) if rule else ""}
    return render(request, "annotation/projects/merge_class.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def take_back_merge(request: HttpRequest, slug: str) -> HttpResponse:
    """Let a class count as itself again, or say why not."""
    project = managed_project(request, slug)
    project_classes.take_back_merge(project=project, name=request.POST.get("name", ""))
    messages.success(request, _("Taken back: the class counts as itself."))
    return redirect("annotation:classes", slug=slug)


def _merged(project: Project, form: MergeForm) -> bool:
    try:
        project_classes.merge_class(project=project, **form.cleaned_data)
    except InvalidConfiguration as error:
        form.blame(error)
    return not form.errors


def _added(request: HttpRequest, project: Project, form: FurtherClassForm) -> bool:
    """Store the class and say so, or show in the form what it breaks."""
    try:
        project_classes.add_class(
            project=project,
            further=form.further(),
            known_beforehand=form.cleaned_data["known_beforehand"],
            actor=person_of(request),
        )
    except InvalidConfiguration as error:
        form.blame(error)
    except ConfigurationFrozen as error:
        form.add_error(None, localized(str(error)))
    return not form.errors


def _rows(project: Project) -> list[dict[str, Any]]:
    names = tuple(str(name) for name in project.classes)
    looks = looks_of(project.settings, names)
    listed = listed_classes(names, tuple(project.settings.get("class_descriptions") or ()), looks)
    counts_as = merged_names(project.merged_classes)
    return [
        {
            "name": one.name,
            "counts_as": counts_as.get(one.name, ""),
            "is_used": one.name in counts_as and project_classes.merge_is_used(project, one.name),
            "group": one.look.group,
            "colour": COLOUR_NAMES.get(one.look.colour, ""),
            "words": one.description_lines,
        }
        for one in listed
    ]
