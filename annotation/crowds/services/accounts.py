"""The account of a platform that a project pays from: its token is sealed, shown to nobody and forgotten on demand."""

from decimal import Decimal

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models.functions import Now

from annotation.crowds.prolific import PlatformFault, Prolific
from annotation.errors import StudyRefused
from annotation.models import Oracle, Project
from annotation.models.crowds import CrowdStudy, PlatformAccount
from annotation.work.services.sending import send_on_commit
from annotation.work.services.tokens import sealer

PURPOSE = b"crowd platforms"
FOLLOW_TASK = "annotation.tasks.follow_study_task"
CHECK_ACCOUNT_TASK = "annotation.tasks.check_platform_account_task"
# What the platform calls a token, by its letters.
LETTERS_OF_TOKENS = r"^[A-Za-z0-9._~+/=-]{8,400}$"


def connect_account(*, project: Project, token: str, fee_percent: Decimal, actor: User) -> PlatformAccount:
    """Store the token that studies are opened with, in the place of an earlier one; a worker tries it at once."""
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
    """Forget the token; studies stay as they are, and nothing further is asked about them."""
    PlatformAccount.objects.filter(project=project).delete()


def refuse_without_platform(project: Project) -> None:
    """Refuse what a site or a project is not for."""
    if not settings.PROLIFIC_URL:
        raise StudyRefused("No administrator has let projects of this site open studies on Prolific.")
    if project.oracle != Oracle.CROWD:
        raise StudyRefused("Only a crowd project is opened to a crowd: this one shows private records.")


def interface_of(account: PlatformAccount) -> Prolific:
    """Return the platform's interface on behalf of an account."""
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
