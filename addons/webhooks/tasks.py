"""Tasks of webhooks."""

from celery import shared_task

from addons.webhooks import events, services


@shared_task
def record_webhooks_task() -> None:
    """Write down what webhooks are to be told, and hand on what is due."""
    events.record_events()
    services.send_due()


@shared_task
def send_webhook_task(*, delivery_id: str) -> None:
    """Try to send one message to a webhook."""
    services.send_delivery(delivery_id=delivery_id)
