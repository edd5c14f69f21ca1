"""Tasks of studies."""

from celery import shared_task

from addons.prolific.services import accounts, following


@shared_task
def follow_studies_task() -> None:
    """Hand studies whose time has come to workers."""
    following.follow_due()


@shared_task(acks_late=True, ignore_result=True)
def follow_study_task(*, study_id: int) -> None:
    """Carry out what is wanted of one study on a crowd platform."""
    following.follow_study(study_id=study_id)


@shared_task
def fetch_signing_keys_task() -> None:
    """Fetch the keys by which a crowd platform signs who it sends, where they are due."""
    accounts.fetch_due_keys()


@shared_task(acks_late=True, ignore_result=True)
def check_platform_account_task(*, project_id: int) -> None:
    """Try a token that was stored."""
    accounts.check_account(project_id=project_id)
