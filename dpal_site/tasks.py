"""Work the site does for itself."""

from celery import shared_task

from dpal_site.monitoring import heartbeats


@shared_task(ignore_result=True)
def heartbeat_task(*, name: str) -> None:
    """Show that the clock, the broker and a worker of this queue do their work."""
    heartbeats.beat(name)
