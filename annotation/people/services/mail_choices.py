"""Choice and address of a person's mail."""

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from annotation.models.letters import MailChoice, Notice


def choice_of(person: User) -> MailChoice:
    found = MailChoice.objects.filter(person=person).first()
    return found or MailChoice(person=person, language=settings.LANGUAGE_CODE)


def choose_mails(*, person: User, language: str, wanted: bool) -> MailChoice:
    with transaction.atomic():
        choice, _new = MailChoice.objects.update_or_create(
            person=person, defaults={"language": language, "wanted": wanted}
        )
        if not wanted:
            Notice.objects.filter(person=person, due_at__isnull=False).update(due_at=None)
    return choice


def keep_language(*, person: User, language: str) -> None:
    MailChoice.objects.update_or_create(person=person, defaults={"language": language})


def confirmed_addresses(people: QuerySet[User]) -> dict[int, str]:
    found = EmailAddress.objects.filter(user__in=people, verified=True).order_by("user", "-primary", "pk")
    return dict(reversed(list(found.values_list("user_id", "email"))))


def mail_address(person: User) -> str:
    return confirmed_addresses(User.objects.filter(pk=person.pk)).get(person.pk, "")
