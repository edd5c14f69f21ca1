"""Hidden checks. They are public or paid for already, and their answers never reach a training."""

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now

from annotation.data.services import check_columns
from annotation.errors import InvalidConfiguration
from annotation.models import Dataset, DatasetRole, DatasetState, Membership, Oracle, Project, Query, Role
from annotation.models.quality import GoldQuery, GoldSource, PauseReason
from annotation.questions.selectors import Checks, checks_of, names_several
from annotation.work.services import leases
from privacy.gate.normalizers import Normalizer, normalize_text
from privacy.wording import in_english

# A check is asked of everybody, so its slots never run out; the column ends here.
SLOTS = 32_767


def add_public_checks(*, project: Project, dataset: Dataset, owner: User, most: int) -> int:
    if dataset.project_id != project.pk or dataset.role != DatasetRole.PUBLIC_TEST:
        raise InvalidConfiguration(
            in_english("Checks must be public examples: private records would be shown without being paid for.")
        )
    if dataset.state != DatasetState.READY:
        raise InvalidConfiguration(in_english("This upload is not read yet."))
    examples = dataset.records.exclude(label=None).order_by("?")
    if not names_several(project):
        examples = examples.filter(label__lt=len(project.classes))
    crowd = project.oracle == Oracle.CROWD
    if not crowd:
        examples = examples.filter(query=None)
    with transaction.atomic():
        # One after another, so that no text becomes two checks and no upload to the pool comes between.
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if not crowd:
            check_columns.refuse_telling_checks(project=project, dataset=dataset)
        taken = set(Query.objects.filter(project=project).values_list("text", flat=True)) if crowd else set()
        queries: list[Query] = []
        choices: list[int] = []
        for record in examples[: 4 * most].iterator(chunk_size=1000):
            text = normalize_text(record.text or "", Normalizer(project.normalizer or "L0")) if crowd else None
            if (crowd and (not text or text in taken)) or len(queries) == most:
                continue
            taken.add(text)
            source: dict[str, Any] = {"text": text} if crowd else {"record": record}
            queries.append(
                Query(project=project, state="gold", round_number=0, overlap=SLOTS, open_slots=SLOTS, **source)
            )
            choices.append(record.label or 0)
        stored = Query.objects.bulk_create(queries)
        GoldQuery.objects.bulk_create(
            GoldQuery(query=query, choice=choice, source=GoldSource.PUBLIC, added_by=owner)
            for query, choice in zip(stored, choices, strict=True)
        )
    return len(stored)


def keep_as_check(*, query: Query, choice: int, owner: User, answered: int) -> GoldQuery:
    """Ask a settled question of everybody from now on; call it with the question's row locked."""
    query.state, query.overlap, query.open_slots = "gold", SLOTS, SLOTS - answered
    query.save(update_fields=["state", "overlap", "open_slots"])
    return GoldQuery.objects.create(query=query, choice=choice, source=GoldSource.ASKED, added_by=owner)


def retire_check(*, check: GoldQuery) -> GoldQuery:
    GoldQuery.objects.filter(pk=check.pk, retired_at=None).update(retired_at=Now())
    check.refresh_from_db()
    return check


def judge_member(*, project: Project, user_id: int) -> Membership | None:
    """Pause the person if even the upper end of the interval of their accuracy is too low."""
    if project.gold_pause_below is None:
        return None
    checks = checks_of(project=project, user_id=user_id)
    if checks.answered < project.gold_minimum or checks.high >= project.gold_pause_below:
        return None
    member = Membership.objects.filter(project=project, user=user_id, role=Role.ANNOTATOR, paused_at=None).first()
    return member and pause_member(membership=member, reason=PauseReason.CHECKS)


def is_warned(project: Project, checks: Checks) -> bool:
    threshold = project.gold_warn_below
    enough = checks.answered >= project.gold_minimum and checks.accuracy is not None
    return threshold is not None and enough and (checks.accuracy or 0.0) < threshold


def pause_member(*, membership: Membership, reason: str) -> Membership:
    """Ask the person nothing further; what they hold they may still answer."""
    membership.paused_at, membership.pause_reason = Now(), reason
    with transaction.atomic():
        membership.save(update_fields=["paused_at", "pause_reason"])
        leases.free_assigned(project_id=membership.project_id, user_id=membership.user_id)
    membership.refresh_from_db()
    return membership


def resume_member(*, membership: Membership) -> Membership:
    membership.paused_at, membership.pause_reason = None, ""
    membership.judged_from = Now()
    membership.save(update_fields=["paused_at", "pause_reason", "judged_from"])
    membership.refresh_from_db()
    return membership
