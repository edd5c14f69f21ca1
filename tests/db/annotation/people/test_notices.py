from datetime import UTC, datetime

import pytest
from allauth.account.models import EmailAddress
from django.utils import timezone

from annotation.choices.rules import hides_selection
from annotation.models import Membership, Role
from annotation.models.letters import MailChoice, MailKind, Notice
from annotation.people.services import letters
from tests import learning
from tests.factories import add_members, make_project, make_user

pytestmark = pytest.mark.django_db


def person_with(project, *, role=Role.ANNOTATOR, verified=True, **user):
    person = make_user(**user)
    EmailAddress.objects.create(user=person, email=f"{person.username}@example.org", verified=verified, primary=True)
    add_members(project, person, role=role)
    return person


def tell(project, kind=MailKind.QUESTIONS, **changes):
    values = {
        "people": letters.members_in_roles(project, (Role.ANNOTATOR,)),
        "kind": kind,
        "subject": "round 1",
    } | changes
    return letters.write_notice(project=project, **values)


def test_whoever_can_be_reached_and_wants_it_is_told_once():
    project = make_project()
    told = person_with(project)
    person_with(project, verified=False)
    person_with(project, is_active=False)
    person_with(project, role=Role.ENGINEER)
    paused = person_with(project)
    Membership.objects.filter(user=paused).update(paused_at=timezone.now(), pause_reason="manager")
    declining = person_with(project)
    letters.choose_mails(person=declining, language="en", wanted=False)
    assert (tell(project), tell(project)) == (1, 0)
    assert list(Notice.objects.values_list("person", flat=True)) == [told.pk]
    assert tell(project, subject="round 2") == 1


def test_whoever_came_later_is_told_no_old_news():
    project = make_project()
    before = timezone.now()
    person_with(project)
    assert tell(project, people=letters.members_in_roles(project, (Role.ANNOTATOR,), since=before)) == 0


@pytest.mark.parametrize("kind", MailKind.values)
def test_of_a_secret_sample_only_what_engineers_read_leaves_the_site(kind):
    hidden = learning.open_secret(make_user())
    person_with(hidden)
    assert hides_selection(hidden.settings)
    assert tell(hidden, kind=MailKind(kind)) == (kind in ("release", "budget"))
    visible = make_project()
    person_with(visible)
    assert tell(visible, kind=MailKind(kind)) == 1


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
