"""Work the site does for itself."""

from celery import shared_task

from dpal_site.accounts import guessing, sessions
from dpal_site.operations import heartbeats


@shared_task(ignore_result=True)
def heartbeat_task(*, name: str) -> None:
    """Show that the clock, the broker and a worker of this queue do their work."""
    heartbeats.write_heartbeat(name)


@shared_task(acks_late=True, ignore_result=True)
def forget_ended_sessions_task() -> None:
    """Keep nothing of a login that is over."""
    sessions.forget_ended_sessions()


@shared_task(acks_late=True, ignore_result=True)
def forget_old_counts_task() -> None:
    """Keep no count of tries that is over."""
    guessing.forget_old_counts()
