"""Tasks of webhooks."""

from celery import shared_task

from addons.webhooks import events, services


@shared_task
def record_webhooks_task() -> None:
    events.record_events()
    services.send_due()


@shared_task
def send_webhook_task(*, delivery_id: str) -> None:
    services.send_delivery(delivery_id=delivery_id)
