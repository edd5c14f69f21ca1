"""What somebody wants to be told by mail, in which language, and when the mail of a day comes."""

import zoneinfo
from collections.abc import Sequence
from datetime import datetime, timedelta

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from annotation.models.letters import MailChoice, Notice

# By the reader's clock.
MORNING_HOUR = 7


def choice_of(person: User) -> MailChoice:
    """Return what a person chose, or what holds where nobody chose."""
    found = MailChoice.objects.filter(person=person).first()
    return found or MailChoice(person=person, language=settings.LANGUAGE_CODE, zone=settings.TIME_ZONE)


def choose_mails(*, person: User, language: str, zone: str, daily: bool, declined: Sequence[str]) -> MailChoice:
    """Keep what a person wants, from what waits to be told on."""
    with transaction.atomic():
        choice, _new = MailChoice.objects.update_or_create(
            person=person,
            defaults={"language": language, "zone": zone, "daily": daily, "declined": sorted(set(declined))},
        )
        waiting = Notice.objects.filter(person=person, due_at__isnull=False)
        waiting.filter(kind__in=choice.declined).update(due_at=None)
        for notice in waiting:
            notice.due_at = due_at(choice, notice.created_at)
            notice.save(update_fields=["due_at"])
    return choice


def keep_language(*, person: User, language: str, zone: str) -> None:
    """Let letters speak the language a person reads the site in."""
    changed = MailChoice.objects.filter(person=person).update(language=language, zone=zone)
    if not changed:
        MailChoice.objects.get_or_create(person=person, defaults={"language": language, "zone": zone})


def due_at(choice: MailChoice, now: datetime) -> datetime:
    """Return when something that happened now is told: at once, or on the next morning of the reader's zone."""
    if not choice.daily:
        return now
    local = now.astimezone(_zone(choice.zone))
    morning = local.replace(hour=MORNING_HOUR, minute=0, second=0, microsecond=0)
    return morning if local < morning else morning + timedelta(days=1)


def confirmed_addresses(people: QuerySet[User]) -> dict[int, str]:
    """Return the confirmed address of each person who has one, the first they chose."""
    found = EmailAddress.objects.filter(user__in=people, verified=True).order_by("user", "-primary", "pk")
    return dict(reversed(list(found.values_list("user_id", "email"))))


def mail_address(person: User) -> str:
    """Return the confirmed address mail goes to; empty where there is none."""
    return confirmed_addresses(User.objects.filter(pk=person.pk)).get(person.pk, "")


def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # a zone that a newer database no longer has
        return zoneinfo.ZoneInfo("UTC")
