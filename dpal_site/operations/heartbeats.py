"""Signs of life: the clock sends one task to each queue, and a worker of that queue writes when it got it."""

from datetime import timedelta

from django.conf import settings
from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Now

from dpal_site.models import Heartbeat


def write_heartbeat(name: str) -> None:
    Heartbeat.objects.update_or_create(name=name, defaults={"seen_at": Now()})


def ages() -> dict[str, timedelta | None]:
    age = ExpressionWrapper(Now() - F("seen_at"), output_field=DurationField())
    heard = dict(Heartbeat.objects.annotate(age=age).values_list("name", "age"))
    return {queue: heard.get(queue) for queue in settings.QUEUES}
