"""Carrying out what is written down of a study, then asking the platform where everything stands."""

import time
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone

from addons.prolific import selectors
from addons.prolific.interface import PlatformFault, Prolific, StudyDraft, StudyThere, SubmissionThere
from addons.prolific.models import (
    BUSY,
    CrowdStudy,
    CrowdSubmission,
    CrowdVerdict,
    DeedState,
    PlatformAccount,
    StudyState,
    StudyStep,
    VerdictKind,
)
from addons.prolific.services.accounts import FOLLOW_TASK, interface_of
from addons.prolific.services.bonuses import carry_out_bonuses
from addons.prolific.services.studies import STUDY_LINK
from annotation import access
from annotation.models.joining import CrowdLink, Platform
from annotation.people.services.crowd_links import pid_digest
from annotation.signals import project_event
from annotation.work.services.sending import send_on_commit
from annotation.work.services.tokens import link_secret
from privacy.wording import as_message

# Longer than a turn can take: whose worker died is taken over after it.
LEASE: Final = timedelta(minutes=5)
TURN_SECONDS: Final = 120.0
FIRST_PAUSE: Final = timedelta(seconds=30)
LONGEST_PAUSE: Final = timedelta(hours=1)
MOST_DOUBLINGS: Final = 7
# How often a study is looked at while people are in it, and while it waits.
OFTEN: Final = timedelta(minutes=1)
SELDOM: Final = timedelta(minutes=15)
AT_ONCE: Final = 100
MOST_VERDICTS: Final = 50
PARAMETERS: Final = "?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
# Where each step leads, by the platform's words.
ENDED: Final = (StudyState.AWAITING_REVIEW, StudyState.COMPLETED)
LEADS_TO: Final = {
    StudyStep.PUBLISH: (*BUSY, *ENDED),
    StudyStep.PAUSE: (StudyState.PAUSED, *ENDED),
    StudyStep.START: (StudyState.ACTIVE, *ENDED),
    StudyStep.STOP: ENDED,
}


def follow_due() -> None:
    due = CrowdStudy.objects.filter(next_at__lte=Now(), project__platform_account__isnull=False)
    due = due.exclude(project__state__in=access.CLOSED)
    for study_id in due.order_by("next_at").values_list("pk", flat=True)[:AT_ONCE]:
        send_on_commit(FOLLOW_TASK, study_id=study_id)


def follow_study(*, study_id: int) -> None:
    """Carry out what is wanted of one study, and ask where it stands, unless somebody else is at it."""
    with transaction.atomic():
        due = CrowdStudy.objects.select_for_update(skip_locked=True, of=("self",)).filter(pk=study_id)
        free = Q(leased_until=None) | Q(leased_until__lte=Now())
        study = due.filter(free, next_at__lte=Now()).select_related("project", "link").first()
        if study is None or study.project.state in access.CLOSED:
            return
        account = PlatformAccount.objects.filter(project=study.project_id).first()
        if account is None:
            return
        ends = timezone.now() + LEASE
        study.attempts += 1
        CrowdStudy.objects.filter(pk=study.pk).update(attempts=study.attempts, leased_until=ends, next_at=ends)
    try:
        is_whole = _take_turn(study, account)
    except PlatformFault as fault:
        changes = _after_fault(study, account, fault)
    else:
        PlatformAccount.objects.filter(pk=account.pk, sealed_token=account.sealed_token).update(fault="")
        study.refresh_from_db()
        changes = {"attempts": 0, "fault": "", "followed_at": Now(), "next_at": _next_time(study, is_whole=is_whole)}
    mine = CrowdStudy.objects.filter(pk=study.pk, leased_until=ends)
    # Whoever pressed meanwhile wants a turn at once.
    if not mine.filter(next_at=ends).update(leased_until=None, **changes):
        mine.update(leased_until=None)
    if CrowdStudy.objects.filter(pk=study.pk, next_at__lte=Now()).exists():
        send_on_commit(FOLLOW_TASK, study_id=study.pk)


def _after_fault(study: CrowdStudy, account: PlatformAccount, fault: PlatformFault) -> dict[str, Any]:
    if fault.is_token:
        PlatformAccount.objects.filter(pk=account.pk, sealed_token=account.sealed_token).update(fault=fault.message)
        return {"fault": fault.message, "next_at": Now() + LONGEST_PAUSE}
    if not fault.again:
        # A step that is refused is not wanted any more; a draft that is refused waits for a manager.
        again_at = Now() + LONGEST_PAUSE if study.external_id else None
        return {"fault": fault.message, "wanted": "", "next_at": again_at}
    pause = min(FIRST_PAUSE * 2 ** min(study.attempts - 1, MOST_DOUBLINGS), LONGEST_PAUSE)
    # Whatever number stands there: a longer time than a timedelta holds is none.
    pause = max(pause, timedelta(seconds=min(fault.after, LONGEST_PAUSE.total_seconds())))
    return {"fault": fault.message, "attempts": min(study.attempts, MOST_DOUBLINGS), "next_at": Now() + pause}


def _next_time(study: CrowdStudy, *, is_whole: bool) -> object:
    waiting = CrowdVerdict.objects.filter(submission__study=study, state=DeedState.WANTED).exists() or study.wanted
    if not is_whole or waiting:
        return Now()
    if study.bonus_sheets.filter(state__in=("wanted", "paying", "unclear")).exists():
        return Now() + OFTEN
    if study.state in selectors.OVER:
        return None
    return Now() + (OFTEN if study.state in BUSY else SELDOM)


def _take_turn(study: CrowdStudy, account: PlatformAccount) -> bool:
    """Do what is written down, in an order in which each step knows what it needs; say whether all was in time."""
    ends = time.monotonic() + TURN_SECONDS
    interface = interface_of(account)
    there = _opened(study, account, interface)
    if there is None:
        return True
    there = _moved(study, interface, there)
    if there is None:
        return True
    _keep(study, there)
    if study.state == StudyState.UNPUBLISHED:
        return True
    _keep_submissions(study, interface.submissions(study.external_id))
    is_whole = _carry_out_verdicts(study, interface, ends)
    carry_out_bonuses(study=study, interface=interface)
    return is_whole


def _opened(study: CrowdStudy, account: PlatformAccount, interface: Prolific) -> StudyThere | None:
    if study.external_id:
        return interface.study(study.external_id)
    there = None
    internal_name = f"dpal-{study.key.hex}"
    if study.tried_at is not None:
        # The answer of an earlier try may have been lost on its way.
        there = interface.find_draft(internal_name)
    if there is None and study.wanted == StudyStep.DISCARD:
        _discarded(study)
        return None
    if there is None:
        currency = interface.currency()
        ours = study.project.currency.upper()
        if ours and currency != ours:
            message = as_message(
                "The Prolific account pays in {theirs}, the project in {ours}.",
                theirs=currency,
                ours=ours,
            )
            raise PlatformFault(message, again=False)
        CrowdStudy.objects.filter(pk=study.pk).update(tried_at=Now())
        there = interface.open_draft(_draft(study, internal_name))
    with transaction.atomic():
        CrowdStudy.objects.filter(pk=study.pk).update(external_id=there.id, salt=None)
        CrowdLink.objects.filter(pk=study.link_id).update(study=there.id)
    study.external_id = there.id
    return there


def _draft(study: CrowdStudy, internal_name: str) -> StudyDraft:
    if study.salt is None:
        raise PlatformFault(as_message("The study was discarded."), again=False)
    secret = link_secret(STUDY_LINK, bytes(study.salt), digest=study.link.digest)
    path = reverse("annotation:crowd_start", args=[secret])
    return StudyDraft(
        name=study.name,
        internal_name=internal_name,
        description=study.description,
        address=settings.SITE_URL.rstrip("/") + path + PARAMETERS,
        completion_code=study.link.completion_code,
        reward_cents=study.reward_cents,
        places=study.places,
        minutes=study.minutes,
        signed=study.link.signed,
    )


def _moved(study: CrowdStudy, interface: Prolific, there: StudyThere) -> StudyThere | None:
    """Take the step that is wanted, unless the study stands behind it already; nothing where it is gone."""
    own = CrowdStudy.objects.filter(pk=study.pk, wanted=study.wanted)
    if not study.wanted:
        return there
    step = StudyStep(study.wanted)
    if step == StudyStep.DISCARD:
        if there.state != StudyState.UNPUBLISHED:
            raise PlatformFault(as_message("The study was published on Prolific meanwhile."), again=False)
        interface.discard(there.id)
        _discarded(study)
        return None
    if there.state not in LEADS_TO[step]:
        there = interface.move(there.id, step)
    own.update(wanted="")
    return there


def _discarded(study: CrowdStudy) -> None:
    CrowdStudy.objects.filter(pk=study.pk).update(wanted="", salt=None)
    _set_state(study, StudyState.DISCARDED)


def _keep(study: CrowdStudy, there: StudyThere) -> None:
    if there.state in StudyState.values:
        _set_state(study, there.state)
    CrowdStudy.objects.filter(pk=study.pk).update(places_taken=there.places_taken)


def _set_state(study: CrowdStudy, state: str) -> None:
    if state == study.state:
        return
    study.state = state
    with transaction.atomic():
        CrowdStudy.objects.filter(pk=study.pk).update(state=state)
        project_event.send(
            sender=CrowdStudy,
            project=study.project,
            event="study",
            subject=f"study {study.pk} at {timezone.now():%Y-%m-%d %H:%M:%S.%f}",
            facts={"study": study.pk, "state": state},
        )


def _keep_submissions(study: CrowdStudy, found: list[SubmissionThere]) -> None:
    """Write down where submissions stand; of a participant a keyed hash, which is the one of the crowd link."""
    code = study.link.completion_code
    rows = [
        CrowdSubmission(
            study=study,
            external_id=each.id,
            pid_digest=pid_digest(project=study.project, platform=Platform.PROLIFIC, pid=each.participant),
            state=each.state,
            has_code=each.code == code,
            return_asked=each.return_asked,
            bonus_cents=each.bonus_cents,
        )
        for each in found
    ]
    CrowdSubmission.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["study", "external_id"],
        update_fields=["state", "has_code", "return_asked", "bonus_cents"],
        batch_size=500,
    )
    approved = study.submissions.filter(state="APPROVED").count()
    CrowdStudy.objects.filter(pk=study.pk, approved__lt=approved).update(approved=approved)


def _carry_out_verdicts(study: CrowdStudy, interface: Prolific, ends: float) -> bool:
    waiting = CrowdVerdict.objects.filter(submission__study=study, state=DeedState.WANTED).select_related("submission")
    for verdict in waiting.order_by("pk")[:MOST_VERDICTS]:
        if time.monotonic() > ends:
            return False
        try:
            _carry_out(verdict, interface)
        except PlatformFault as fault:
            if fault.again or fault.is_token:
                raise
            # This one alone is refused; it may be decided on anew.
            _settle(verdict, DeedState.REFUSED, fault)
            continue
        _settle(verdict, DeedState.DONE)
        if verdict.kind == VerdictKind.APPROVE:
            _count_approval(verdict)
    return not waiting.exists()


def _carry_out(verdict: CrowdVerdict, interface: Prolific) -> None:
    """Tell one verdict; what the platform shows as done, from an earlier try, is not told again."""
    submission = verdict.submission
    if verdict.kind == VerdictKind.APPROVE:
        if submission.state != "APPROVED":
            interface.approve(submission.external_id)
    elif verdict.kind == VerdictKind.REJECT:
        if submission.state != "REJECTED":
            interface.reject(submission.external_id, category=verdict.category, message=verdict.reason)
    elif not submission.return_asked and submission.state != "RETURNED":
        interface.ask_return(submission.external_id, message=verdict.reason)


def _settle(verdict: CrowdVerdict, state: DeedState, fault: PlatformFault | None = None) -> None:
    CrowdVerdict.objects.filter(pk=verdict.pk, state=DeedState.WANTED).update(
        state=state, reason="", fault="" if fault is None else fault.message
    )


def _count_approval(verdict: CrowdVerdict) -> None:
    changed = CrowdSubmission.objects.filter(~Q(state="APPROVED"), pk=verdict.submission_id).update(state="APPROVED")
    if changed:
        CrowdStudy.objects.filter(pk=verdict.submission.study_id).update(approved=F("approved") + 1)
