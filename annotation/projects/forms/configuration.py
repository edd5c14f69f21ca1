"""Configurations as forms and files: of a project that stands, of a copy, and of one that asks at random beside it."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.text import format_lazy

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.presets import PRESETS, Preset
from annotation.choices.rules import field_defaults
from annotation.choices.services import in_document
from annotation.errors import InvalidConfiguration
from annotation.models import Arrival, Project
from annotation.models.configurations import settings_in
from annotation.projects.forms.drafts import arrival_of, as_sent, draft_form
from annotation.projects.forms.opening import ChoosingForm, PoolProjectForm, StreamProjectForm
from annotation.projects.services.configuring import limits_of
from annotation.work.rest import checked
from dpal.reading.quoting import quoted
from privacy.wording import as_message, in_english, joined_messages

# These have pages of their own, with a reason, versions or a log.
ELSEWHERE = ("name", "question", "guidelines", *ChoosingForm.budgets)


def elsewhere(form_class: type[ChoosingForm]) -> set[str]:
    return {*ELSEWHERE, *form_class.later_names()}


def configuration_form(
    project: Project, frozen: Mapping[str, str], data: Mapping[str, Any] | None = None
) -> ChoosingForm:
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
    names = [name for name in form.fields if name not in elsewhere(type(form))]
    return [form[name] for name in sorted(names, key=lambda name: name not in form.choices)]


def chosen_values(form: ChoosingForm, project: Project, frozen: Mapping[str, str]) -> dict[str, Any]:
    values = form.values()
    hidden = field_defaults().keys() if project.arrival == Arrival.POOL else ()
    names = [*form.fields, *(name for name in hidden if name not in form.fields)]
    kept = {*frozen, *elsewhere(type(form))}
    known = project.settings.keys()
    return {name: values.get(name) for name in names if name not in kept and (name in known or in_document(name))}


def standing_values(project: Project) -> dict[str, Any]:
    settings = project.settings
    # What the choices so far do not use has its default where another choice does.
    unused = project.absent.keys() - settings_in(project.configuration_id).keys()
    values = {name: settings[name] for name in form_class_of(project).known_names() if name in settings.keys() - unused}
    lists = {"classes": "\n".join(project.classes), "columns": "\n".join(map(column_line, project.columns))}
    return values | lists | limits_of(project)


def form_class_of(project: Project) -> type[ChoosingForm]:
    return StreamProjectForm if project.arrival == Arrival.STREAM else PoolProjectForm


def column_line(column: Mapping[str, Any]) -> str:
    name = quoted(column["name"], ":")
    allowed = "".join(f" or {what}" for what in ("other", "missing") if column.get(what) not in (None, False))
    if "categories" in column:
        listed = ", ".join(_category(str(category)) for category in column["categories"])
        # A category with the word that stands between two bounds is in quotation marks, as the first.
        if " to " in listed and not listed.startswith('"'):
            first, *others = map(str, column["categories"])
            listed = ", ".join(['"' + first.replace('"', '""') + '"', *map(_category, others)])
        return f"{name}: {listed}{allowed}"
    return f"{name}: {column['low']!r} to {column['high']!r}{allowed}"


def _category(name: str) -> str:
    # In quotation marks it does not say what else a cell may hold.
    if re.fullmatch(r"(.*\s)?or (missing|other)", name):
        return '"' + name.replace('"', '""') + '"'
    return quoted(name, ",")


FORMAT = "dpal-configuration"
FORMAT_VERSION = 1
LARGEST = 1_000_000
NOT_READ = as_message("A configuration file is JSON in UTF-8 of at most {size} bytes.", size=LARGEST)
LONGEST_NAME = 120
# What may quote a record leaves the site in no file.
INSIDE = frozenset({"guidelines"})
PARTS = frozenset({"format", "format_version", "preset", "settings"})


@dataclass(frozen=True, slots=True)
class ConfigurationFile:
    preset: Preset
    draft: dict[str, Any]


def file_of(project: Project) -> dict[str, Any]:
    """Return a project's configuration as it is written into a file: nothing of people, records or what was spent."""
    found = standing_values(project) | {"classes": list(project.classes), "columns": list(project.columns)}
    # What its choices do not use says nothing of it.
    used = draft_form(PRESETS[project.preset], standing_values(project)).fields
    settings = {
        name: found[name] for name in sorted(used) if name not in INSIDE and found.get(name) not in (None, "", [])
    }
    return {"format": FORMAT, "format_version": FORMAT_VERSION, "preset": project.preset, "settings": settings}


def copied_draft(project: Project, name: str) -> dict[str, Any]:
    return standing_values(project) | {"name": name[:LONGEST_NAME]}


def parse_file(raw: bytes) -> ConfigurationFile:
    if len(raw) > LARGEST:
        raise InvalidConfiguration(NOT_READ)
    try:
        content = json.loads(raw)
    except json.JSONDecodeError as error:
        raise InvalidConfiguration(
            as_message("Line {line}, column {column}: this is not JSON.", line=error.lineno, column=error.colno)
        ) from error
    except (ValueError, RecursionError) as error:
        # Not UTF-8, lists in lists without end, or a number of thousands of digits.
        raise InvalidConfiguration(NOT_READ) from error
    return read_file(content)


def read_file(content: Any) -> ConfigurationFile:
    try:
        json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise InvalidConfiguration(NOT_READ) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InvalidConfiguration(
            as_message("This is no configuration file: it has no {format}.", format=f'"{FORMAT}"')
        )
    if content.get("format_version") != FORMAT_VERSION:
        raise InvalidConfiguration(
            as_message("format_version: this site reads version {version} of the format.", version=FORMAT_VERSION)
        )
    preset = PRESETS.get(str(content.get("preset")))
    settings = content.get("settings")
    if preset is None:
        raise InvalidConfiguration(in_english("preset: must be one of {presets}.", presets=", ".join(PRESETS)))
    if not isinstance(settings, dict):
        raise InvalidConfiguration(in_english("settings: must be an object of names and values."))
    if wrong := [*_unknown_parts(content), *_wrong_settings(preset, settings)]:
        raise InvalidConfiguration(joined_messages("; ", wrong))
    draft = {name: _typed(name, value) for name, value in settings.items()}
    return ConfigurationFile(preset, draft)


def settings_schema(preset: Preset) -> dict[str, Any]:
    """Return the JSON schema of the settings of a preset, with its defaults."""
    form_class = StreamProjectForm if arrival_of(preset) == Arrival.STREAM else PoolProjectForm
    offered = form_class(preset=preset).fields
    fields = {name: offered.get(name, field) for name, field in form_class.known_fields().items()}
    found = {name: _field_schema(name, field) for name, field in fields.items()}
    for name, default in preset.defaults.items():
        if name in found and isinstance(default, str | int | float | bool):
            found[name]["default"] = default
    return {"type": "object", "additionalProperties": False, "properties": found}


def _field_schema(name: str, field: forms.Field) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "string", "title": str(field.label or name)}
    # A field of floats is one of integers for Django.
    kinds = {forms.BooleanField: "boolean", forms.IntegerField: "integer", forms.FloatField: "number"}
    for kind, json_type in kinds.items():
        if isinstance(field, kind):
            found["type"] = json_type
    if isinstance(field, forms.IntegerField):
        bounds = {"minimum": field.min_value, "maximum": field.max_value}
        found |= {key: bound for key, bound in bounds.items() if isinstance(bound, int | float)}
    if isinstance(field, forms.ChoiceField) and (named := [str(key) for key, _label in field.widget.choices if key]):
        found["enum"] = named
    if _fits(name, ["a"]):
        found |= {"type": ["string", "array"], "items": {"type": "string"}}
    elif name == "columns":
        found |= {"type": ["string", "array"], "items": {"type": "object"}}
    if not field.required:
        found["type"] = [*([found["type"]] if isinstance(found["type"], str) else found["type"]), "null"]
        if "enum" in found:
            found["enum"] = [*found["enum"], None, ""]
    return found


def checked_form(file: ConfigurationFile) -> ChoosingForm:
    form = draft_form(file.preset, file.draft)
    checked(form)
    return form


def _unknown_parts(content: Mapping[str, Any]) -> Iterator[str]:
    for name in content.keys() - PARTS:
        yield as_message("{field}: {reason}", field=name[:100], reason=as_message("This site has no such setting."))


def _wrong_settings(preset: Preset, settings: Mapping[str, Any]) -> Iterator[str]:
    known = (StreamProjectForm if arrival_of(preset) == "stream" else PoolProjectForm).known_names()
    for name, value in settings.items():
        if name not in known:
            yield as_message("{field}: {reason}", field=name[:100], reason=as_message("This site has no such setting."))
        elif not _fits(name, value):
            yield as_message(
                "{field}: {reason}", field=name, reason=in_english("Must be a text, a number, true, false or null.")
            )


def _fits(name: str, value: Any) -> bool:
    declared = CATALOGUE.parameters().get(name)
    if isinstance(value, list) and (name == "classes" or (declared is not None and declared.type is tuple)):
        return all(isinstance(each, str) and "\n" not in each for each in value)
    if name == "columns" and isinstance(value, list):
        return all(isinstance(each, dict) and _is_column(each) for each in value)
    return value is None or isinstance(value, str | int | float)


def _is_column(column: Mapping[str, Any]) -> bool:
    if not isinstance(column.get("name"), str):
        return False
    named = column.keys() - {"missing", "other"}
    if named == {"name", "categories"}:
        categories = column["categories"]
        return isinstance(categories, list) and all(isinstance(each, str) for each in categories)
    bounds = (column.get("low"), column.get("high"))
    return named == {"name", "low", "high"} and all(isinstance(each, int | float) for each in bounds)


def _typed(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return "\n".join(map(column_line, value) if name == "columns" else value)
    return value
