"""What somebody wants by mail: kept, in force for what waits, and read again by the next letter."""

from datetime import UTC, datetime

import pytest
from allauth.account.models import EmailAddress
from django.db import IntegrityError, transaction

from annotation.models.letters import MailChoice, MailKind, Notice
from annotation.people.services import mail_choices
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db


def choose(person, **changes):
    values = {"language": "en", "zone": "UTC", "daily": False, "declined": []} | changes
    return mail_choices.choose_mails(person=person, **values)


def test_nobody_who_chose_nothing_declines_anything():
    assert mail_choices.choice_of(make_user()).declined == []


def test_what_is_declined_is_dropped_from_what_waits_and_the_rest_waits_for_morning():
    person, project = make_user(), make_project()
    for kind in (MailKind.RELEASE, MailKind.BUDGET):
        Notice.objects.create(person=person, project=project, kind=kind, subject="one", due_at=datetime.now(UTC))
    choose(person, daily=True, declined=[MailKind.BUDGET])
    release, budget = (Notice.objects.get(kind=kind) for kind in (MailKind.RELEASE, MailKind.BUDGET))
    assert budget.due_at is None
    assert release.due_at.hour == mail_choices.MORNING_HOUR
    choose(person)
    release.refresh_from_db()
    assert release.due_at == release.created_at


@pytest.mark.parametrize(
    ("now", "zone", "due"),
    [
        ("2026-03-01 06:59", "UTC", "2026-03-01 07:00"),
        ("2026-03-01 07:00", "UTC", "2026-03-02 07:00"),
        # Summer time begins that night: seven is an hour sooner.
        ("2026-03-28 12:00", "Europe/Berlin", "2026-03-29 05:00"),
        ("2026-03-01 12:00", "No/Where", "2026-03-02 07:00"),
    ],
)
def test_mornings_are_the_readers(now, zone, due):
    choice = MailChoice(daily=True, zone=zone)
    read = datetime.fromisoformat(f"{now}+00:00")
    assert mail_choices.due_at(choice, read).astimezone(UTC) == datetime.fromisoformat(f"{due}+00:00")
    choice.daily = False
    assert mail_choices.due_at(choice, read) == read


def test_a_language_is_kept_and_nothing_else_of_the_choice_changes():
    person = make_user()
    mail_choices.keep_language(person=person, language="de", zone="Europe/Berlin")
    choose(person, language="en", declined=[MailKind.BUDGET])
    mail_choices.keep_language(person=person, language="de", zone="UTC")
    kept = MailChoice.objects.get()
    assert (kept.language, kept.zone, kept.declined) == ("de", "UTC", ["budget"])


def test_mail_goes_to_the_first_confirmed_address_alone():
    person = make_user()
    assert mail_choices.mail_address(person) == ""
    EmailAddress.objects.create(user=person, email="new@example.org", primary=True)
    assert mail_choices.mail_address(person) == ""
    EmailAddress.objects.create(user=person, email="old@example.org", verified=True)
    assert mail_choices.mail_address(person) == "old@example.org"
    EmailAddress.objects.filter(email="new@example.org").update(verified=True)
    assert mail_choices.mail_address(person) == "new@example.org"


def test_the_database_refuses_to_decline_what_is_no_kind():
    with pytest.raises(IntegrityError, match="annotation_mailchoice_declines_kinds"), transaction.atomic():
        choose(make_user(), declined=["everything"])
