"""Writes of a project's settings: columns, and versions of its configuration document."""

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Max

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.presets import PRESETS
from annotation.choices.refusals import refuse_broken
from annotation.models import Project
from annotation.models.configurations import SCHEMA_VERSION, Configuration, remember, settings_in
from annotation.models.database import next_number
from privacy.choices import Kind

COLUMNS = frozenset(name for field in Project._meta.concrete_fields for name in (field.name, field.attname))


def in_document(name: str) -> bool:
    return CATALOGUE.section_of(name) is not None


def document_of(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    document: dict[str, dict[str, Any]] = {}
    for choice in CATALOGUE.chosen(settings):
        document.setdefault(choice.kind.section, {}).update(choice.of(settings).document())
    return document


def document_digest(document: Mapping[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def store_project(*, settings: Mapping[str, Any], document: Mapping[str, Mapping[str, Any]]) -> Project:
    number = next_number(Project)
    actor = settings["created_by"]
    with transaction.atomic():
        # Its project follows in this transaction.
        first = _store_version(project_id=number, version=1, document=document, actor=actor)
        return Project.objects.create(pk=number, configuration=first, **settings)


def settings_with(project: Project, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a project's settings under changes; what nothing used so far is as its preset or what uses it now says."""
    settings = {**project.settings, **changes}
    said = settings_in(project.configuration_id).keys() | changes.keys() | COLUMNS
    preset = PRESETS[project.preset].defaults
    for choice in CATALOGUE.chosen(settings):
        settings |= {
            each.name: preset.get(each.name, each.default) for each in choice.parameters() if each.name not in said
        }
    return settings


def set_settings(*, project: Project, changes: Mapping[str, Any], actor: AbstractBaseUser | None) -> list[str]:
    """Set settings of a stored project and return the fields to save; its caller holds the project's row."""
    columns = {name: value for name, value in changes.items() if name in COLUMNS}
    for name, value in columns.items():
        setattr(project, name, value)
    document = document_of(settings_with(project, changes))
    if document == project.configuration.document:
        return list(columns)
    last = Configuration.objects.filter(project=project).aggregate(version=Max("version"))["version"]
    project.configuration = _store_version(project_id=project.pk, version=last + 1, document=document, actor=actor)
    return [*columns, "configuration"]


def change_settings(
    *, project: Project, changes: Mapping[str, Any], kinds: Collection[Kind], actor: AbstractBaseUser | None
) -> Project:
    with transaction.atomic():
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        settings = settings_with(locked, changes)
        broken: dict[str, str] = {}
        for choice in CATALOGUE.chosen(settings):
            if choice.kind in kinds:
                broken |= choice.broken_by(settings)
        refuse_broken(broken)
        if fields := set_settings(project=locked, changes=changes, actor=actor):
            locked.save(update_fields=fields)
    return locked


def _store_version(
    *, project_id: int, version: int, document: Mapping[str, Mapping[str, Any]], actor: AbstractBaseUser | None
) -> Configuration:
    stored = Configuration.objects.create(
        project_id=project_id,
        version=version,
        schema_version=SCHEMA_VERSION,
        document=document,
        digest=document_digest(document),
        created_by_id=None if actor is None else actor.pk,
    )
    remember(stored.pk, document)
    return stored
