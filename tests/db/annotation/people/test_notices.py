import pytest
from allauth.account.models import EmailAddress
from django.utils import timezone

from annotation.choices.rules import hides_selection
from annotation.models import Membership, Role
from annotation.models.letters import MailKind, Notice
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
