"""Work the site does for itself."""

from celery import shared_task

from dpal_site.accounts import guessing, sessions
from dpal_site.operations import checks


@shared_task(ignore_result=True)
def heartbeat_task(*, name: str) -> None:
    checks.write_heartbeat(name)


@shared_task(acks_late=True, ignore_result=True)
def forget_ended_sessions_task() -> None:
    sessions.forget_ended_sessions()


@shared_task(acks_late=True, ignore_result=True)
def forget_old_counts_task() -> None:
    guessing.forget_old_counts()
