"""A project's configuration as a file: a template that opens further projects, here or on another site."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.preset import Preset
from annotation.choices.presets import PRESETS
from annotation.errors import InvalidConfiguration
from annotation.models import Project
from annotation.projects.forms.choosing import ChoosingForm
from annotation.projects.forms.configuration import column_line, form_class_of, standing_values
from annotation.projects.forms.pool import PoolProjectForm
from annotation.projects.forms.streams import StreamProjectForm
from annotation.projects.forms.wizard import OWN_LIMIT, WizardStep, arrival_of, draft_form, step_of
from annotation.work.rest import checked
from privacy.wording import as_message, joined_messages

FORMAT = "dpal-configuration"
FORMAT_VERSION = 1
LARGEST = 1_000_000
LONGEST_NAME = 120
# What may quote a record leaves the site in no file.
INSIDE = frozenset({"guidelines"})
PARTS = frozenset({"format", "format_version", "preset", "settings"})


@dataclass(frozen=True, slots=True)
class ConfigurationFile:
    """What a file holds: the preset, and what somebody would type into the steps of a new project."""

    preset: Preset
    draft: dict[str, Any]


def file_of(project: Project) -> dict[str, Any]:
    """Return a project's configuration as it is written into a file: nothing of people, records or what was spent.

    Guidelines are left out, for they may quote a record; a copy on the same site keeps them.
    """
    found = standing_values(project) | {"classes": list(project.classes), "columns": list(project.columns)}
    # What its choices do not use says nothing of it.
    used = draft_form(PRESETS[project.preset], standing_values(project)).fields
    settings = {
        name: found[name] for name in sorted(used) if name not in INSIDE and found.get(name) not in (None, "", [])
    }
    return {"format": FORMAT, "format_version": FORMAT_VERSION, "preset": project.preset, "settings": settings}


def copied_draft(project: Project, name: str) -> dict[str, Any]:
    """Return what the steps of a new project would hold had somebody typed a project anew under another name."""
    return standing_values(project) | {"name": name[:LONGEST_NAME], "level": OWN_LIMIT}


def parse_file(raw: bytes) -> ConfigurationFile:
    """Read a file's bytes; see `read_file`."""
    if len(raw) > LARGEST:
        raise InvalidConfiguration(as_message("A configuration file has at most {size} bytes.", size=LARGEST))
    try:
        content = json.loads(raw)
    except json.JSONDecodeError as error:
        raise InvalidConfiguration(
            as_message("Line {line}, column {column}: this is not JSON.", line=error.lineno, column=error.colno)
        ) from error
    except (ValueError, RecursionError) as error:
        # Not UTF-8, lists in lists without end, or a number of thousands of digits.
        raise InvalidConfiguration(as_message("A configuration file is JSON in UTF-8.")) from error
    return read_file(content)


def read_file(content: Any) -> ConfigurationFile:
    """Return what a file asks for.

    Raises
    ------
    InvalidConfiguration
        With everything that is wrong with the file itself. What its values break, the form of the project says.
    """
    try:
        json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise InvalidConfiguration(as_message("A configuration file is JSON in UTF-8.")) from error
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
        raise InvalidConfiguration(as_message("preset: must be one of {presets}.", presets=", ".join(PRESETS)))
    if not isinstance(settings, dict):
        raise InvalidConfiguration(as_message("settings: must be an object of names and values."))
    if wrong := [*_unknown_parts(content), *_wrong_settings(preset, settings)]:
        raise InvalidConfiguration(joined_messages("; ", wrong))
    draft = {name: _typed(name, value) for name, value in settings.items()}
    return ConfigurationFile(preset, draft | {"level": OWN_LIMIT})


def checked_form(file: ConfigurationFile) -> ChoosingForm:
    """Return the form of the project that a file describes.

    Raises
    ------
    InvalidConfiguration
        Naming each setting and the rule it breaks.
    """
    form = draft_form(file.preset, file.draft)
    checked(form)
    return form


def _unknown_parts(content: Mapping[str, Any]) -> Iterator[str]:
    for name in content.keys() - PARTS:
        yield as_message(
            "{field}: {reason}", field=name[:100], reason=as_message("No part of a configuration file is called so.")
        )


def _wrong_settings(preset: Preset, settings: Mapping[str, Any]) -> Iterator[str]:
    known = (StreamProjectForm if arrival_of(preset) == "stream" else PoolProjectForm).known_names()
    for name, value in settings.items():
        if name not in known:
            yield as_message(
                "{field}: {reason}", field=name[:100], reason=as_message("This site has no setting of that name.")
            )
        elif not _fits(name, value):
            yield as_message(
                "{field}: {reason}", field=name, reason=as_message("Must be a text, a number, true, false or null.")
            )


def _fits(name: str, value: Any) -> bool:
    """Say whether a value can be typed at all; what it means, the form decides."""
    declared = CATALOGUE.parameters().get(name)
    if isinstance(value, list) and (name == "classes" or (declared is not None and declared.type is tuple)):
        return all(isinstance(each, str) and "\n" not in each for each in value)
    if name == "columns" and isinstance(value, list):
        return all(isinstance(each, dict) and _is_column(each) for each in value)
    return value is None or isinstance(value, str | int | float)


def _is_column(column: Mapping[str, Any]) -> bool:
    if not isinstance(column.get("name"), str):
        return False
    if column.keys() == {"name", "categories"}:
        categories = column["categories"]
        return isinstance(categories, list) and all(isinstance(each, str) for each in categories)
    bounds = (column.get("low"), column.get("high"))
    return column.keys() == {"name", "low", "high"} and all(isinstance(each, int | float) for each in bounds)


def _typed(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return "\n".join(map(column_line, value) if name == "columns" else value)
    return value


def setting_differences(first: Project, second: Project) -> list[tuple[str, Any, Any]]:
    """Return the settings in which two projects differ, with both values, in the order of a new project's steps."""
    one, other = (file_of(project)["settings"] for project in (first, second))
    names = [*form_class_of(first).known_names(), *form_class_of(second).known_names()]
    steps = list(WizardStep)
    order = {name: (steps.index(step_of(name)), place) for place, name in reversed(list(enumerate(names)))}
    last = (len(steps), 0)
    return [
        (name, one.get(name), other.get(name))
        for name in sorted(one.keys() | other.keys(), key=lambda name: (order.get(name, last), name))
        if one.get(name) != other.get(name)
    ]
