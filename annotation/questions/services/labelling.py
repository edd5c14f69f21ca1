"""Settings of labelling that a manager may change at any time."""

from decimal import Decimal
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import connection, transaction

from annotation.choices.services import configurations
from annotation.models import (
    Oracle,
    Project,
)
from annotation.questions.services import queue
from annotation.work.services import jobs
from privacy.choices import Kind

LABELLING_FIELDS = (
    "confirm_answers",
    "skips_to_set_aside",
    "answers_per_person",
    "answers_per_day",
    "encounter_limit",
    "quiet_from",
    "quiet_until",
)
QUALITY_FIELDS = {
    "gold_share",
    "gold_minimum",
    "gold_warn_below",
    "gold_pause_below",
    "overlap_limit",
    "aggregation",
    "reviewed",
    "review_share",
}


def set_label_budget(
    *,
    project: Project,
    labels_limit: int | None,
    money_limit: Decimal | None,
    price_per_label: Decimal | None,
    currency: str,
    actor: AbstractBaseUser | None = None,
) -> Project:
    """Set how many answers may be asked for, and the price."""
    changes = {
        "labels_limit": labels_limit,
        "money_limit": money_limit,
        "price_per_label": price_per_label,
        "currency": currency,
    }
    with transaction.atomic():
        changed = configurations.change_settings(project=project, changes=changes, kinds={Kind.BUDGET}, actor=actor)
        jobs.send_project_changed(project.pk)
    project.configuration = changed.configuration
    return project


def set_labelling(*, project: Project, actor: AbstractBaseUser | None = None, **settings: Any) -> Project:
    assert set(settings) <= set(LABELLING_FIELDS)
    return _change(project, settings, actor)


def note_encounters(project: Project) -> None:
    """Note whom each person has met so far; nothing is noted while a project has no limit."""
    if project.oracle != Oracle.CROWD:
        with connection.cursor() as cursor:
            cursor.execute(queue.NOTE_ALL_ENCOUNTERS, {"project": project.pk})


def set_quality(*, project: Project, actor: AbstractBaseUser | None = None, **fields: Any) -> Project:
    unknown = set(fields) - QUALITY_FIELDS
    if unknown:
        raise ValueError(f"no such fields: {sorted(unknown)}")
    return _change(project, fields, actor)


def _change(project: Project, changes: dict[str, Any], actor: AbstractBaseUser | None) -> Project:
    was_limited = project.encounter_limit is not None
    changed = configurations.change_settings(project=project, changes=changes, kinds={Kind.LABELLING}, actor=actor)
    project.configuration = changed.configuration
    # After the commit: from now on every claim notes by itself whom it meets.
    if changed.encounter_limit is not None and not was_limited:
        note_encounters(changed)
    return changed
