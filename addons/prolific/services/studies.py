"""Writing down what a manager wants of a study: open it, move it on, decide on submissions, forget who came."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Sum
from django.db.models.functions import Now

from addons.prolific import selectors
from addons.prolific.errors import StudyRefused
from addons.prolific.models import (
    REJECTION_REASONS,
    BonusLine,
    BonusState,
    CrowdStudy,
    CrowdSubmission,
    CrowdVerdict,
    DeedState,
    PlatformAccount,
    StudyState,
    StudyStep,
    VerdictKind,
)
from addons.prolific.services.accounts import FOLLOW_TASK, refuse_without_platform
from annotation import access
from annotation.models import Project
from annotation.models.joining import Platform
from annotation.people.services import crowd_links
from annotation.work.services.sending import send_on_commit
from annotation.work.services.tokens import link_secret
from privacy.ledger.entries import broken_rule
from privacy.wording import as_message, in_english

# Whoever returns a place leaves it to another, so that more come than there are places.
STUDY_LINK = b"study link"
COMERS_PER_PLACE = 5
MOST_PLACES = 10_000
MOST_PAY = 10_000
MOST_MINUTES = 600
MOST_DAYS = 90
LEAST_MESSAGE = 100
MOST_MESSAGE = 1000


def open_study(
    *,
    project: Project,
    name: str,
    description: str,
    places: int,
    reward_cents: int,
    minutes: int,
    answers_wanted: int,
    lifetime: timedelta,
    owner: User,
    signed: bool = False,
) -> CrowdStudy:
    refuse_without_platform(project)
    salt = secrets.token_bytes(32)
    with transaction.atomic():
        # The project first, as the database's rule of money has it.
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        access.refuse_if_closed(locked)
        account = PlatformAccount.objects.filter(project=locked).first()
        if account is None:
            raise StudyRefused("Connect the project to Prolific first.")
        refuse_other_currency(locked, account)
        link, _token = crowd_links.create_link(
            project=locked,
            platform=Platform.PROLIFIC,
            study="",
            answers_wanted=answers_wanted,
            maximum_participants=places * COMERS_PER_PLACE,
            lifetime=lifetime,
            owner=owner,
            token=link_secret(STUDY_LINK, salt),
            signed=signed,
        )
        with within_money(locked, field="places"):
            study = CrowdStudy.objects.create(
                project=locked,
                link=link,
                salt=salt,
                name=name,
                description=description,
                places=places,
                reward_cents=reward_cents,
                minutes=minutes,
                fee_percent=account.fee_percent,
                next_at=Now(),
                created_by=owner,
            )
        send_on_commit(FOLLOW_TASK, study_id=study.pk)
    return study


def refuse_other_currency(project: Project, account: PlatformAccount) -> None:
    if account.currency and project.currency and account.currency != project.currency.upper():
        raise StudyRefused(
            as_message(
                "The Prolific account pays in {theirs}, the project in {ours}.",
                theirs=account.currency,
                ours=project.currency.upper(),
            ),
            field="reward",
        )


@contextmanager
def within_money(project: Project, *, field: str) -> Iterator[None]:
    """Say what is left where the database refuses what is beyond the project's limit in money."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        if broken_rule(error) != "prolific_studies_within_money":
            raise
        left = max(Decimal(0), selectors.money_of(project).left or Decimal(0))
        raise StudyRefused(
            as_message("With the fee this exceeds the {left} left of the project's limit.", left=str(left)),
            field=field,
        ) from error


def want_step(*, study: CrowdStudy, step: StudyStep) -> None:
    with transaction.atomic():
        locked = _locked(study)
        if step not in selectors.STEPS.get(StudyState(locked.state), ()) or locked.wanted:
            raise StudyRefused("The study's state does not allow this.")
        if step in (StudyStep.STOP, StudyStep.DISCARD):
            crowd_links.revoke_link(link=locked.link)
        unknown_there = not locked.external_id and locked.tried_at is None and locked.leased_until is None
        if step == StudyStep.DISCARD and unknown_there:
            CrowdStudy.objects.filter(pk=locked.pk).update(state=StudyState.DISCARDED, salt=None, next_at=None)
            return
        CrowdStudy.objects.filter(pk=locked.pk).update(wanted=step)
        follow_soon(locked)


def approve_complete(*, study: CrowdStudy, actor: User) -> int:
    with transaction.atomic():
        locked = _locked(study)
        rows = [row for row in selectors.rows_of(locked) if row.may_be_approved]
        CrowdVerdict.objects.bulk_create(
            CrowdVerdict(submission=row.submission, kind=VerdictKind.APPROVE, decided_by=actor) for row in rows
        )
        if rows:
            follow_soon(locked)
    return len(rows)


def judge(*, submission: CrowdSubmission, kind: VerdictKind, message: str, category: str, actor: User) -> CrowdVerdict:
    message = " ".join(message.split())
    if kind == VerdictKind.APPROVE:
        raise StudyRefused(in_english("Participations are approved together."))
    least = LEAST_MESSAGE if kind == VerdictKind.REJECT else 1
    if not least <= len(message) <= MOST_MESSAGE:
        raise StudyRefused(
            as_message("The message has {least} to {most} letters.", least=least, most=MOST_MESSAGE), field="message"
        )
    if kind == VerdictKind.REJECT and category not in REJECTION_REASONS:
        raise StudyRefused("Choose a reason that Prolific knows.", field="category")
    with transaction.atomic():
        locked = _locked(submission.study)
        current = CrowdSubmission.objects.get(pk=submission.pk)
        if current.state != selectors.REVIEWED:
            raise StudyRefused("This participation has already been decided.")
        try:
            with transaction.atomic():
                verdict = CrowdVerdict.objects.create(
                    submission=current,
                    kind=kind,
                    category=category if kind == VerdictKind.REJECT else "",
                    reason=message,
                    decided_by=actor,
                )
        except IntegrityError as error:
            raise StudyRefused("This participation has already been decided.") from error
        follow_soon(locked)
    return verdict


def forget_people(*, study: CrowdStudy) -> None:
    """Forget who came to a study that is over: its submissions, decisions and bonuses; sums of money stay."""
    with transaction.atomic():
        locked = _locked(study)
        waiting = CrowdVerdict.objects.filter(submission__study=locked, state=DeedState.WANTED).exists()
        unpaid = locked.bonus_sheets.filter(state__in=(BonusState.WANTED, BonusState.PAYING, BonusState.UNCLEAR))
        if locked.state not in selectors.OVER or waiting or unpaid.exists():
            raise StudyRefused("Parts of the study are not settled yet.")
        paid = BonusLine.objects.filter(sheet__study=locked).exclude(sheet__state=BonusState.REFUSED)
        cents = paid.aggregate(cents=Sum("amount_cents", default=0))["cents"]
        CrowdStudy.objects.filter(pk=locked.pk).update(
            forgotten_bonus_cents=locked.forgotten_bonus_cents + cents, next_at=None
        )
        locked.bonus_sheets.all().delete()
        locked.submissions.all().delete()


def follow_soon(study: CrowdStudy) -> None:
    CrowdStudy.objects.filter(pk=study.pk).update(next_at=Now(), attempts=0)
    send_on_commit(FOLLOW_TASK, study_id=study.pk)


def _locked(study: CrowdStudy) -> CrowdStudy:
    return CrowdStudy.objects.select_for_update(of=("self",)).select_related("link", "project").get(pk=study.pk)
