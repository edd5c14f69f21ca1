"""Writes of a project's settings: columns, and versions of its configuration document."""

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from annotation.choices.catalogue import CATALOGUE, parameter_names
from annotation.choices.presets import PRESETS
from annotation.errors import refuse_broken
from annotation.models import Arrival, Dataset, Job, Oracle, Project, Query, WorkState
from annotation.models.configurations import SCHEMA_VERSION, Configuration, remember, settings_in
from annotation.models.database import next_number
from annotation.selectors import FIXED, is_charged
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


# A stream pays once for all of these.
PAID_BY_STREAMS = ("selection", "features", "training")
ROW_SETTINGS = ("data_kind", "columns", "image_height", "image_width", "image_colours")


def frozen_settings(project: Project) -> dict[str, str]:
    frozen: dict[str, str] = {}
    if Query.objects.filter(project=project).exists():
        frozen |= dict.fromkeys(("classes", "question_kind"), _("This setting is in use."))
    rows = Dataset.objects.filter(project=project)
    if project.arrival == Arrival.STREAM:
        rows = rows.filter(row_count__gt=0)
    if rows.exists():
        frozen |= dict.fromkeys(ROW_SETTINGS, _("This setting is in use."))
    coming = Job.objects.filter(project=project, kind="gate").exclude(state=WorkState.FAILED)
    if project.oracle == Oracle.CROWD and coming.exists():
        frozen |= dict.fromkeys(_gate_settings(), _("This setting is in use."))
    if is_charged(project):
        names = [*FIXED]
        if project.oracle == Oracle.CROWD:
            names += _gate_settings()
        frozen |= dict.fromkeys(names, _("Something was charged, so settings of the guarantee are fixed."))
        going_on = _("Something was charged, so settings of the guarantee are fixed.")
        frozen = dict.fromkeys(_going_on(project), going_on) | frozen
    return frozen


def _gate_settings() -> list[str]:
    return [Kind.GATE.key, *parameter_names(Kind.GATE), "privacy_unit"]


def _going_on(project: Project) -> list[str]:
    """Name the settings of choices that what was paid for goes on under; of a stream, those of every choice."""
    stream = project.arrival == Arrival.STREAM
    names: list[str] = []
    for choice in CATALOGUE.chosen(project.settings):
        if choice.stays or (stream and choice.kind.section in PAID_BY_STREAMS):
            names += [choice.kind.key, *(each.name for each in choice.parameters())]
    return [name for name in names if name]
