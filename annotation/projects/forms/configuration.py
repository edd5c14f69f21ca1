"""The form of a project that stands: its settings as they are, those that are fixed by now shown and not changed."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.text import format_lazy

from annotation.choices.presets import PRESETS
from annotation.choices.selection_rules import field_defaults
from annotation.choices.services.configurations import in_document
from annotation.models import Arrival, Project
from annotation.models.configurations import settings_in
from annotation.projects.forms.choosing import ChoosingForm
from annotation.projects.forms.pool import PoolProjectForm
from annotation.projects.forms.streams import StreamProjectForm
from annotation.projects.forms.wizard import as_sent
from annotation.projects.services.configuring import limits_of

# These have pages of their own, with a reason, versions or a log.
ELSEWHERE = ("name", "question", "guidelines", *ChoosingForm.budgets)


def elsewhere(form_class: type[ChoosingForm]) -> set[str]:
    """Name the settings that other pages ask for."""
    return {*ELSEWHERE, *form_class.later_names()}


def configuration_form(
    project: Project, frozen: Mapping[str, str], data: Mapping[str, Any] | None = None
) -> ChoosingForm:
    """Return the form of a project, bound; `data` is what was typed over what stands."""
    form_class = form_class_of(project)
    preset = PRESETS[project.preset]
    standing = standing_values(project)
    typed: dict[str, Any] = {}
    if data is not None:
        shown = str(data.get("boxes", "")).split(",")
        for name, field in form_class.known_fields().items():
            if isinstance(field, forms.BooleanField) and name in shown:
                typed[name] = name in data
            elif name in data:
                typed[name] = data[name]
    kept = {name: standing[name] for name in (*frozen, *elsewhere(form_class)) if name in standing}
    values = standing | typed | kept
    probe = form_class(preset=preset, initial=values)
    standing_or_default = {
        name: values.get(name, probe.get_initial_for_field(field, name)) for name, field in probe.fields.items()
    }
    form = form_class({name: as_sent(value) for name, value in standing_or_default.items()}, preset=preset)
    for name in frozen:
        if name in form.fields:
            form.fields[name].disabled = True
            form.initial[name] = values.get(name, form.data[name])
            form.fields[name].help_text = format_lazy("{} {}", form.fields[name].help_text, frozen[name])
    return form


def shown_fields(form: ChoosingForm) -> list[forms.BoundField]:
    """Return what the page shows, choices first."""
    names = [name for name in form.fields if name not in elsewhere(type(form))]
    return [form[name] for name in sorted(names, key=lambda name: name not in form.choices)]


def chosen_values(form: ChoosingForm, project: Project, frozen: Mapping[str, str]) -> dict[str, Any]:
    """Return what was chosen, with the defaults of what the choices do not use."""
    values = form.values()
    hidden = field_defaults().keys() if project.arrival == Arrival.POOL else ()
    names = [*form.fields, *(name for name in hidden if name not in form.fields)]
    kept = {*frozen, *elsewhere(type(form))}
    known = project.settings.keys()
    return {name: values.get(name) for name in names if name not in kept and (name in known or in_document(name))}


def standing_values(project: Project) -> dict[str, Any]:
    """Return a project's settings and limits as somebody would type them into its form."""
    settings = project.settings
    # What the choices so far do not use has its default where another choice does.
    unused = project.absent.keys() - settings_in(project.configuration_id).keys()
    values = {name: settings[name] for name in form_class_of(project).known_names() if name in settings.keys() - unused}
    lists = {"classes": "\n".join(project.classes), "columns": "\n".join(map(column_line, project.columns))}
    return values | lists | limits_of(project)


def form_class_of(project: Project) -> type[ChoosingForm]:
    """Return the form that opens and changes projects like this one."""
    return StreamProjectForm if project.arrival == Arrival.STREAM else PoolProjectForm


def column_line(column: Mapping[str, Any]) -> str:
    """Return a declared column as somebody would type it."""
    if "categories" in column:
        return f"{column['name']}: {', '.join(column['categories'])}"
    return f"{column['name']}: {column['low']!r} to {column['high']!r}"
