"""Tasks of studies."""

from celery import shared_task

from addons.prolific.services import accounts, following


@shared_task
def follow_studies_task() -> None:
    following.follow_due()


@shared_task(acks_late=True, ignore_result=True)
def follow_study_task(*, study_id: int) -> None:
    following.follow_study(study_id=study_id)


@shared_task
def fetch_signing_keys_task() -> None:
    accounts.fetch_due_keys()


@shared_task(acks_late=True, ignore_result=True)
def check_platform_account_task(*, project_id: int) -> None:
    accounts.check_account(project_id=project_id)
