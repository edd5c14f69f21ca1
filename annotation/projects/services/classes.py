"""A further class for a project that people work in, a class that counts as another one, and a class's name."""

from dataclasses import replace
from datetime import datetime

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.utils import timezone

from annotation.choices import services
from annotation.choices.classes import (
    AT,
    FIELDS,
    FIXED_ANSWERS,
    INTO,
    NOT_ASKED,
    NOT_BEFOREHAND,
    NOT_DECIDED_BEFOREHAND,
    USED,
    FurtherClass,
    broken_class,
    broken_merge,
    broken_rename,
    grown_settings,
    growth_hindrance,
    merge_hindrance,
    renamed_merges,
    renamed_names,
    renamed_settings,
    unmerged_classes,
)
from annotation.choices.label_types.catalogue import label_type_of
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
        broken = broken_class(locked.classes, locked.renamed_classes, further)
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
            refuse_broken({"name": as_message("A class cannot be merged into itself.")})
        elif merge_is_used(locked, name):
            refuse_broken({"name": USED})
        left = {other: one for other, one in locked.merged_classes.items() if other != name}
        return _store_merges(locked, left)


def rename_class(
    *, project: Project, name: str, to: str, known_beforehand: bool, actor: AbstractBaseUser | None
) -> Project:
    """Give a class another name: answers keep its number, and what was released keeps the name it was trained with."""
    name, to = canonical_name(name), canonical_name(to)
    with transaction.atomic():
        locked = Project.objects.select_for_update().get(pk=project.pk)
        broken = broken_rename(locked.classes, locked.renamed_classes, name, to)
        if not label_type_of(str(locked.question_kind), locked.settings).lists_classes:
            broken["name"] = FIXED_ANSWERS
        elif not known_beforehand:
            broken["known_beforehand"] = NOT_BEFOREHAND
        refuse_broken(broken)
        if "classes" in frozen_settings(locked):
            locked.renamed_classes = renamed_names(locked.renamed_classes, name, to)
            locked.merged_classes = renamed_merges(locked.merged_classes, name, to)
        changes = renamed_settings(locked.settings, name, to)
        changed = services.set_settings(project=locked, changes=changes, actor=actor)
        locked.save(update_fields=[*changed, "renamed_classes", "merged_classes"])
        jobs.send_project_changed(locked.pk)
    return locked


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
