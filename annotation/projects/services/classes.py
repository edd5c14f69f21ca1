"""A further class for a project that people work in, and a class that counts as another one."""

from dataclasses import replace
from datetime import datetime

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.utils import timezone

from annotation.choices.classes import (
    AT,
    FIELDS,
    INTO,
    NOT_ASKED,
    NOT_BEFOREHAND,
    NOT_DECIDED_BEFOREHAND,
    USED,
    FurtherClass,
    broken_class,
    broken_merge,
    grown_settings,
    growth_hindrance,
    merge_hindrance,
    unmerged_classes,
)
from annotation.choices.services import frozen_settings
from annotation.errors import InvalidConfiguration, refuse_broken
from annotation.models import Project
from annotation.projects.services import configuring
from annotation.signals import classes_changed
from annotation.work.services import jobs
from dpal.reading.labels import INVISIBLE, canonical_name
from privacy.wording import as_message


def hindrance_of(project: Project) -> str:
    return growth_hindrance(project.settings) if "classes" in frozen_settings(project) else ""


def add_class(*, project: Project, further: FurtherClass, known_beforehand: bool, actor: AbstractBaseUser) -> Project:
    further = replace(further, name=further.name.translate(INVISIBLE))
    with transaction.atomic():
        # Two who add at once add one after the other.
        locked = Project.objects.select_for_update().get(pk=project.pk)
        broken = broken_class(locked.classes, further)
        if rule := hindrance_of(locked):
            broken["name"] = rule
        elif not known_beforehand:
            broken["known_beforehand"] = NOT_BEFOREHAND
        refuse_broken(broken)
        try:
            changes = grown_settings(locked.settings, replace(further, name=canonical_name(further.name)))
            return configuring.configure_project(project=locked, changes=changes, actor=actor)
        except InvalidConfiguration as error:
            refuse_broken({FIELDS.get(name, name): rule for name, rule in error.broken.items()})
            raise


def merge_hindrance_of(project: Project) -> str:
    return merge_hindrance(project.settings) or ("" if "classes" in frozen_settings(project) else NOT_ASKED)


def merge_is_used(project: Project, name: str) -> bool:
    since = datetime.fromisoformat(project.merged_classes[name][AT])
    return project.labels_used_at is not None and since <= project.labels_used_at


def merge_class(*, project: Project, name: str, into: str, known_beforehand: bool) -> Project:
    """Let a class count as another one from now on; no stored answer changes, and what was released stays."""
    name, into = canonical_name(name), canonical_name(into)
    with transaction.atomic():
        locked = Project.objects.select_for_update().get(pk=project.pk)
        broken = broken_merge(locked.classes, locked.merged_classes, name, into)
        if rule := merge_hindrance_of(locked):
            broken["name"] = rule
        elif not known_beforehand:
            broken["known_beforehand"] = NOT_DECIDED_BEFOREHAND
        refuse_broken(broken)
        said = {INTO: into, AT: timezone.now().isoformat()}
        return _store_merges(locked, locked.merged_classes | {name: said})


def take_back_merge(*, project: Project, name: str) -> Project:
    with transaction.atomic():
        locked = Project.objects.select_for_update().get(pk=project.pk)
        if name not in locked.merged_classes:
            refuse_broken({"name": as_message("This class counts as itself.")})
        elif merge_is_used(locked, name):
            refuse_broken({"name": USED})
        left = {other: one for other, one in locked.merged_classes.items() if other != name}
        return _store_merges(locked, left)


def _store_merges(locked: Project, merged: dict[str, dict[str, str]]) -> Project:
    before = unmerged_classes(locked.classes, locked.merged_classes)
    locked.merged_classes = merged
    locked.save(update_fields=["merged_classes"])
    try:
        classes_changed.send(sender=Project, project=locked, before=before)
    except InvalidConfiguration as error:
        refuse_broken({"name": next(iter(error.broken.values()), str(error))})
    jobs.send_project_changed(locked.pk)
    return locked
