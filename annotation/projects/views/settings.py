"""Pages of a project's settings: configuration, files, kind and classes."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from annotation.access import managed_project, may_open
from annotation.budget import history
from annotation.budget.action_words import action_sentence
from annotation.choices.classes import looks_of, merged_names
from annotation.choices.services import frozen_settings
from annotation.errors import ConfigurationFrozen, InvalidConfiguration
from annotation.models import Project
from annotation.people.identity import note_nothing, person_of
from annotation.projects.forms.configuration import (
    LARGEST,
    chosen_values,
    configuration_form,
    copied_draft,
    file_of,
    parse_file,
    shown_fields,
)
from annotation.projects.forms.opening import ChoosingForm
from annotation.projects.forms.settings import (
    COLOUR_NAMES,
    FurtherClassForm,
    MergeForm,
    RenameForm,
    SettingsForm,
    kind_of,
    setting_name,
    setting_value,
)
from annotation.projects.services import classes as project_classes
from annotation.projects.services import configuring, drafts, opening
from annotation.questions.class_list import listed_classes
from annotation.selectors import fixed_settings, is_charged
from annotation.wording import localized

SHOWN = 100
SHOWN_ACTIONS = 10


@login_required
def settings(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    form = SettingsForm(request.POST or None, project=project)
    if request.method == "POST" and form.is_valid():
        opening.set_description(project=project, actor=person_of(request), **form.cleaned_data)
        messages.success(request, _("Saved."))
        return redirect("annotation:settings", slug=slug)
    context = {
        "project": project,
        "form": form,
        "is_charged": is_charged(project),
        "may_open": may_open(request),
        "fixed": [(setting_name(name), setting_value(name, value)) for name, value in fixed_settings(project)],
        "version": project.changes.count() + 1,
        "changes": _versions(project),
        "actions": [(action, action_sentence(action)) for action in project.actions.order_by("-pk")[:SHOWN_ACTIONS]],
    }
    return render(request, "annotation/projects/settings.html", context, status=422 if form.errors else 200)


def _versions(project: Project) -> list[dict[str, Any]]:
    return [
        {
            "version": change.version,
            "change": change,
            "fields": [
                (setting_name(name), setting_value(name, before), setting_value(name, after))
                for name, (before, after) in sorted(change.fields.items())
            ],
        }
        for change in history.changes_in(project)[:SHOWN]
    ]


@login_required
def configuration(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    frozen = frozen_settings(project)
    before = configuration_form(project, frozen)
    form = configuration_form(project, frozen, request.POST) if request.method == "POST" else before
    shown = {field.name for field in shown_fields(before)}
    sent = set(request.POST.get("fields", ",".join(shown)).split(","))
    new = {field.name for field in shown_fields(form)} - sent if request.method == "POST" else set()
    errors = [] if new or request.method != "POST" else _store(request, project, form, frozen)
    if errors is None:
        messages.success(request, _("Saved."))
        return redirect("annotation:configuration", slug=slug)
    fields = shown_fields(form)
    context = {
        "project": project,
        "fields": fields,
        "frozen": frozen,
        "is_charged": is_charged(project),
        "version": project.changes.count() + 1,
        "kind": kind_of(project),
        "new": new,
        "errors": errors,
        "boxes": ",".join(field.name for field in fields if field.widget_type == "checkbox"),
        "sent_fields": ",".join(field.name for field in fields),
        "form": form,
    }
    return render(request, "annotation/projects/configuration.html", context, status=422 if errors else 200)


def _store(request: HttpRequest, project: Project, form: ChoosingForm, frozen: Mapping[str, str]) -> list[str] | None:
    if not form.is_valid():
        return [
            f"{form[name].label}: {error}" if name in form.fields else str(error)
            for name, found in form.errors.items()
            for error in found
        ]
    try:
        configuring.configure_project(
            project=project, changes=chosen_values(form, project, frozen), actor=person_of(request)
        )
    except (ConfigurationFrozen, InvalidConfiguration) as error:
        return [localized(str(error))]
    return None


class ConfigurationFileForm(forms.Form):
    file = forms.FileField(max_length=200, allow_empty_file=True)


@require_GET
@login_required
def download(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    response = JsonResponse(file_of(project), json_dumps_params={"indent": 2, "ensure_ascii": False})
    response["Content-Disposition"] = f'attachment; filename="{project.slug}.configuration.json"'
    return response


@require_POST
@login_required
@permission_required("annotation.add_project", raise_exception=True)
def copy(request: HttpRequest, slug: str) -> HttpResponse:
    note_nothing(request)
    project = managed_project(request, slug, closed_too=True)
    name = _("%(name)s, copy") % {"name": project.name}
    typed = copied_draft(project, name)
    draft = drafts.start_draft(owner=person_of(request), preset=project.preset, typed=typed)
    messages.info(request, _("Nothing is opened yet."))
    return redirect("annotation:opening", draft.pk)


@require_POST
@login_required
@permission_required("annotation.add_project", raise_exception=True)
def from_file(request: HttpRequest) -> HttpResponse:
    note_nothing(request)
    form = ConfigurationFileForm(request.POST, request.FILES)
    if not form.is_valid():
        messages.error(request, _("Choose a file first."))
        return redirect("annotation:new_project")
    try:
        file = parse_file(form.cleaned_data["file"].read(LARGEST + 1))
    except InvalidConfiguration as error:
        messages.error(request, localized(str(error)))
        return redirect("annotation:new_project")
    draft = drafts.start_draft(owner=person_of(request), preset=file.preset.key, typed=file.draft)
    messages.info(request, _("Nothing is opened yet."))
    return redirect("annotation:opening", draft.pk)


@login_required
def classes(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    form = FurtherClassForm(request.POST or None, project=project)
    if request.method == "POST" and form.is_valid() and _added(request, project, form):
        messages.success(request, _("Saved."))
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
def rename_class(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    form = RenameForm(request.POST or None, project=project)
    if request.method == "POST" and form.is_valid() and _renamed(request, project, form):
        messages.success(request, _("Saved."))
        return redirect("annotation:classes", slug=slug)
    context = {"project": project, "form": form}
    return render(request, "annotation/projects/rename_class.html", context, status=422 if form.errors else 200)


def _renamed(request: HttpRequest, project: Project, form: RenameForm) -> bool:
    try:
        project_classes.rename_class(project=project, **form.cleaned_data, actor=person_of(request))
    except InvalidConfiguration as error:
        form.blame(error)
    return not form.errors


@login_required
def merge_class(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    form = MergeForm(request.POST or None, project=project)
    if request.method == "POST" and form.is_valid() and _merged(project, form):
        messages.success(request, _("Saved."))
        return redirect("annotation:classes", slug=slug)
    rule = project_classes.merge_hindrance_of(project)
    context = {"project": project, "form": form, "hindrance": localized(rule) if rule else ""}
    return render(request, "annotation/projects/merge_class.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def take_back_merge(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    project_classes.take_back_merge(project=project, name=request.POST.get("name", ""))
    messages.success(request, _("Saved."))
    return redirect("annotation:classes", slug=slug)


def _merged(project: Project, form: MergeForm) -> bool:
    try:
        project_classes.merge_class(project=project, **form.cleaned_data)
    except InvalidConfiguration as error:
        form.blame(error)
    return not form.errors


def _added(request: HttpRequest, project: Project, form: FurtherClassForm) -> bool:
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
