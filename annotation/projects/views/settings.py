"""A project's configuration: what is fixed, what may change, what changed, and who did what."""

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from annotation.access import managed_project, may_open
from annotation.budget import history
from annotation.budget.action_words import action_sentence
from annotation.choices.configuration import frozen_settings
from annotation.errors import ConfigurationFrozen, InvalidConfiguration
from annotation.models import Project
from annotation.people.identity import person_of
from annotation.projects.forms.choosing import ChoosingForm
from annotation.projects.forms.configuration import chosen_values, configuration_form, shown_fields
from annotation.projects.forms.kinds import kind_of
from annotation.projects.forms.setting_names import setting_name
from annotation.projects.forms.settings import SettingsForm
from annotation.projects.services import configuring, opening
from annotation.projects.settings_words import setting_value
from annotation.selectors import fixed_settings, is_charged
from annotation.wording import localized

SHOWN = 100
SHOWN_ACTIONS = 10


@login_required
def settings(request: HttpRequest, slug: str) -> HttpResponse:
    """Change what touches no guarantee; read the rest, and the history of both."""
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
    """Every setting with its default and its effect; what is fixed by now says why and stays."""
    project = managed_project(request, slug)
    frozen = frozen_settings(project)
    before = configuration_form(project, frozen)
    form = configuration_form(project, frozen, request.POST) if request.method == "POST" else before
    shown = {field.name for field in shown_fields(before)}
    sent = set(request.POST.get("fields", ",".join(shown)).split(","))
    new = {field.name for field in shown_fields(form)} - sent if request.method == "POST" else set()
    errors = [] if new or request.method != "POST" else _store(request, project, form, frozen)
    if errors is None:
        messages.success(request, _("Saved. The change and your name are in the history."))
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
    """Store what was chosen and return None, or say what is wrong."""
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
