"""The account that a project pays from, whose token is sealed, and the keys that the platform signs with."""

import logging
from datetime import timedelta
from decimal import Decimal
from typing import Final

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q
from django.db.models.functions import Now

from addons.prolific.errors import StudyRefused
from addons.prolific.interface import PlatformFault, Prolific
from addons.prolific.models import (
    BUSY,
    BonusLine,
    BonusSheet,
    CrowdStudy,
    CrowdSubmission,
    CrowdVerdict,
    PlatformAccount,
)
from annotation.errors import InvalidConfiguration
from annotation.models import Oracle, Project
from annotation.models.joining import CrowdLink, Platform, PlatformKeys
from annotation.work.services.sending import send_on_commit
from annotation.work.services.tokens import sealer

PURPOSE = b"crowd platforms"
FOLLOW_TASK = "addons.prolific.tasks.follow_study_task"
CHECK_ACCOUNT_TASK = "addons.prolific.tasks.check_platform_account_task"
# What the platform calls a token, by its letters.
LETTERS_OF_TOKENS = r"^[A-Za-z0-9._~+/=-]{8,400}$"
logger = logging.getLogger(__name__)
# Twice as often as the platform asks for.
KEYS_AGE: Final = timedelta(hours=12)
# Whatever is wanted, it is not asked more often than so.
KEYS_PAUSE: Final = timedelta(minutes=1)


def connect_account(*, project: Project, token: str, fee_percent: Decimal, actor: User) -> PlatformAccount:
    refuse_without_platform(project)
    account, _new = PlatformAccount.objects.update_or_create(
        project=project,
        defaults={
            "sealed_token": sealer(PURPOSE).encrypt(token.encode()).decode(),
            "fee_percent": fee_percent,
            "currency": "",
            "fault": "",
            "created_by": actor,
            "created_at": Now(),
        },
    )
    send_on_commit(CHECK_ACCOUNT_TASK, project_id=project.pk)
    # What waited for a token that is taken goes on.
    for study in CrowdStudy.objects.filter(project=project, next_at__isnull=False):
        CrowdStudy.objects.filter(pk=study.pk).update(next_at=Now(), attempts=0)
        send_on_commit(FOLLOW_TASK, study_id=study.pk)
    return account


def disconnect_account(*, project: Project) -> None:
    PlatformAccount.objects.filter(project=project).delete()


def refuse_without_platform(project: Project) -> None:
    if not settings.PROLIFIC_URL:
        raise StudyRefused("An administrator must allow studies on Prolific first.")
    if project.oracle != Oracle.CROWD:
        raise StudyRefused("This project shows private records, so it has no crowd links.")


def interface_of(account: PlatformAccount) -> Prolific:
    return Prolific(token=sealer(PURPOSE).decrypt(account.sealed_token.encode()).decode())


def check_account(*, project_id: int) -> None:
    """Ask the platform whose token it is, and write down the account's currency, or why it is not taken."""
    account = PlatformAccount.objects.filter(project=project_id).first()
    if account is None:
        return
    # Another token may be stored while the platform is asked.
    same = PlatformAccount.objects.filter(pk=account.pk, sealed_token=account.sealed_token)
    try:
        same.update(currency=interface_of(account).currency(), fault="")
    except PlatformFault as fault:
        same.update(fault=fault.message)


def fetch_due_keys() -> None:
    """Fetch the keys if a live link needs them and they are missing, old, or lack one that was named."""
    if not settings.PROLIFIC_URL or not CrowdLink.objects.filter(signed=True, expires_at__gt=Now()).exists():
        return
    row, _new = PlatformKeys.objects.get_or_create(platform=Platform.PROLIFIC)
    due = Q(fetched_at=None) | Q(is_wanted=True) | Q(fetched_at__lte=Now() - KEYS_AGE)
    free = Q(asked_at=None) | Q(asked_at__lte=Now() - KEYS_PAUSE)
    if not PlatformKeys.objects.filter(due, free, pk=row.pk).update(asked_at=Now()):
        return
    try:
        keys = Prolific().signing_keys()
    except PlatformFault as fault:
        # Those before stay, and are believed for a while.
        logger.warning("keys of %s not fetched: %s", row.platform, fault)
        return
    PlatformKeys.objects.filter(pk=row.pk).update(keys=keys, fetched_at=Now(), is_wanted=False)


def close_project(*, project: Project, **_sent: object) -> None:
    """Refuse to delete a project while people are in a study of it; nothing further is asked of the platform."""
    if CrowdStudy.objects.filter(project=project, state__in=BUSY).exists():
        raise InvalidConfiguration("A study is running. Stop it first.")
    PlatformAccount.objects.filter(project=project).delete()


def erase_studies(*, project: Project, **_sent: object) -> None:
    for rows in (
        BonusLine.objects.filter(sheet__study__project=project),
        BonusSheet.objects.filter(study__project=project),
        CrowdVerdict.objects.filter(submission__study__project=project),
        CrowdSubmission.objects.filter(study__project=project),
        CrowdStudy.objects.filter(project=project),
    ):
        rows.delete()
