from datetime import UTC, datetime

import pytest
from allauth.account.models import EmailAddress

from annotation.models.letters import MailChoice, MailKind, Notice
from annotation.people.services import letters
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db


def choose(person, **changes):
    return letters.choose_mails(person=person, **{"language": "en", "wanted": True} | changes)


def test_mail_is_on_until_a_person_turns_it_off():
    assert letters.choice_of(make_user()).wanted


def test_turning_mail_off_drops_what_waits():
    person, project = make_user(), make_project()
    Notice.objects.create(
        person=person, project=project, kind=MailKind.RELEASE, subject="one", due_at=datetime.now(UTC)
    )
    choose(person)
    assert Notice.objects.get().due_at is not None
    choose(person, wanted=False)
    assert Notice.objects.get().due_at is None


def test_a_language_is_kept_and_nothing_else_of_the_choice_changes():
    person = make_user()
    letters.keep_language(person=person, language="de")
    assert MailChoice.objects.get().wanted
    choose(person, language="en", wanted=False)
    letters.keep_language(person=person, language="de")
    kept = MailChoice.objects.get()
    assert (kept.language, kept.wanted) == ("de", False)


def test_mail_goes_to_the_first_confirmed_address_alone():
    person = make_user()
    assert letters.mail_address(person) == ""
    EmailAddress.objects.create(user=person, email="new@example.org", primary=True)
    assert letters.mail_address(person) == ""
    EmailAddress.objects.create(user=person, email="old@example.org", verified=True)
    assert letters.mail_address(person) == "old@example.org"
    EmailAddress.objects.filter(email="new@example.org").update(verified=True)
    assert letters.mail_address(person) == "new@example.org"
