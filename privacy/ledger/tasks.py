"""Work the ledger does by itself."""

from datetime import timedelta

from celery import shared_task
from django.conf import settings

from privacy.ledger import services as ledger


@shared_task(acks_late=True)
def charge_stale_reservations_task() -> int:
    return ledger.charge_stale(older_than=timedelta(seconds=settings.STALE_RESERVATION_SECONDS))
