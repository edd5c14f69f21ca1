"""Settings of labelling, and progress of people who came by a crowd platform."""

from decimal import Decimal
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, User
from django.db import transaction
from django.utils import timezone

from annotation.choices import services
from annotation.errors import NotMember
from annotation.models import Assignment, AssignmentState, Membership, Project, Role
from annotation.models.joining import CrowdParticipant
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
    changes = {
        "labels_limit": labels_limit,
        "money_limit": money_limit,
        "price_per_label": price_per_label,
        "currency": currency,
    }
    with transaction.atomic():
        changed = services.change_settings(project=project, changes=changes, kinds={Kind.BUDGET}, actor=actor)
        jobs.send_project_changed(project.pk)
    project.configuration = changed.configuration
    return project


def set_labelling(*, project: Project, actor: AbstractBaseUser | None = None, **settings: Any) -> Project:
    assert set(settings) <= set(LABELLING_FIELDS)
    return _change(project, settings, actor)


def set_quality(*, project: Project, actor: AbstractBaseUser | None = None, **fields: Any) -> Project:
    unknown = set(fields) - QUALITY_FIELDS
    if unknown:
        raise ValueError(f"no such fields: {sorted(unknown)}")
    return _change(project, fields, actor)


def _change(project: Project, changes: dict[str, Any], actor: AbstractBaseUser | None) -> Project:
    was_limited = project.encounter_limit is not None
    changed = services.change_settings(project=project, changes=changes, kinds={Kind.LABELLING}, actor=actor)
    project.configuration = changed.configuration
    # After the commit: from now on every claim notes by itself whom it meets.
    if changed.encounter_limit is not None and not was_limited:
        queue.note_encounters(changed)
    return changed


def answers_of(participant: CrowdParticipant) -> int:
    answered = Assignment.objects.filter(
        annotator=participant.user_id,
        project=participant.link.project_id,
        state=AssignmentState.LABELLED,
        finished_at__gte=participant.created_at,
    )
    return answered.count()


def is_done(participant: CrowdParticipant) -> bool:
    return answers_of(participant) >= participant.link.answers_wanted


def complete(*, participant: CrowdParticipant) -> bool:
    if participant.completed_at is not None:
        return True
    project = participant.link.project
    member = Membership.objects.filter(project=project, user=participant.user_id, role=Role.ANNOTATOR).first()
    if member is None or member.paused_at is not None:
        return False
    if not is_done(participant) and queue.claim_next(project=project, user=participant.user) is not None:
        return False
    participant.completed_at = timezone.now()
    participant.save(update_fields=["completed_at"])
    return True


def own_participation(*, participant_id: int | None, user: User, project: Project) -> CrowdParticipant:
    found = CrowdParticipant.objects.select_related("link__project").filter(
        pk=participant_id or 0, user=user, link__project=project
    )
    participant = found.first()
    if participant is None:
        raise NotMember("Come by the platform's link first.")
    # The process of the label pages knows whoever asks, and nobody by their id.
    participant.user = user
    return participant
