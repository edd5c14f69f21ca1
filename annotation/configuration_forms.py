"""The form of a project that stands: its settings as they are, those that are fixed by now shown and not changed."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.text import format_lazy

from annotation.choosing_forms import ChoosingForm
from annotation.models import Arrival, Project
from annotation.pool_forms import PoolProjectForm
from annotation.presets import PRESETS
from annotation.selection_rules import FIELD_DEFAULTS
from annotation.services.configuring import limits_of
from annotation.stream_forms import StreamProjectForm
from annotation.wizard_forms import as_sent

# These have pages of their own, with a reason, versions or a log.
ELSEWHERE = ("name", "question", "guidelines", *ChoosingForm.budgets)


def configuration_form(
    project: Project, frozen: Mapping[str, str], data: Mapping[str, Any] | None = None
) -> ChoosingForm:
    """Return the form of a project, bound; `data` is what was typed over what stands."""
    form_class = _class_of(project)
    preset = PRESETS[project.preset]
    standing = standing_values(project)
    typed = {} if data is None else {name: data[name] for name in form_class.base_fields if name in data}
    boxes = [name for name, field in form_class.base_fields.items() if isinstance(field, forms.BooleanField)]
    shown = [] if data is None else str(data.get("boxes", "")).split(",")
    typed |= {name: name in (data or {}) for name in boxes if name in shown}
    kept = {name: standing[name] for name in (*frozen, *ELSEWHERE) if name in standing}
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
    names = [name for name in form.fields if name not in ELSEWHERE]
    return [form[name] for name in sorted(names, key=lambda name: name not in form.choices)]


def chosen_values(form: ChoosingForm, project: Project, frozen: Mapping[str, str]) -> dict[str, Any]:
    """Return what was chosen, with the defaults of what the choices do not use."""
    values = form.values()
    hidden = FIELD_DEFAULTS.keys() if project.arrival == Arrival.POOL else ()
    names = [*form.fields, *(name for name in hidden if name not in form.fields)]
    kept = {*frozen, *ELSEWHERE}
    return {name: values.get(name) for name in names if name not in kept and hasattr(project, name)}


def standing_values(project: Project) -> dict[str, Any]:
    """Return a project's settings and limits as somebody would type them into its form."""
    values = {name: getattr(project, name) for name in _class_of(project).base_fields if hasattr(project, name)}
    lists = {"classes": "\n".join(project.classes), "columns": "\n".join(map(_line, project.columns))}
    return values | lists | limits_of(project)


def _class_of(project: Project) -> type[ChoosingForm]:
    return StreamProjectForm if project.arrival == Arrival.STREAM else PoolProjectForm


def _line(column: Mapping[str, Any]) -> str:
    if "categories" in column:
        return f"{column['name']}: {', '.join(column['categories'])}"
    return f"{column['name']}: {column['low']!r} to {column['high']!r}"
