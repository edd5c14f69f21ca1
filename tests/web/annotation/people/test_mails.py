import pytest
from allauth.account.models import EmailAddress
from django.urls import resolve, reverse
from django.utils import translation

from annotation.models import Role
from annotation.models.history import Action
from annotation.models.joining import Invitation
from annotation.models.letters import Letter, MailChoice, MailKind, Notice
from annotation.people import letter_words
from annotation.people.services import letters
from tests.clients import browser_of
from tests.factories import add_members, make_project, make_user
from tests.programs import Caller

pytestmark = pytest.mark.django_db
FORM = {"role": "annotator", "maximum_uses": 1, "days": 3, "note": ""}


@pytest.fixture
def manager():
    return make_user("lead")


@pytest.fixture
def project(manager):
    made = make_project(owner=manager, name="Voice queries")
    add_members(made, manager, role=Role.MANAGER)
    return made


def web(user):
    return browser_of(user)


def test_a_person_chooses_what_comes_by_mail(manager):
    address = reverse("annotation:mails")
    page = web(manager).get(address).content.decode()
    assert "Confirm an address to receive mail" in page
    assert page.count("checked") == 1
    EmailAddress.objects.create(user=manager, email="lead@example.org", verified=True, primary=True)
    web(manager).post(address, {"language": "de"})
    kept = MailChoice.objects.get(person=manager)
    assert (kept.wanted, kept.language) == (False, "de")
    page = web(manager).get(address).content.decode()
    assert "It goes to lead@example.org" in page
    assert page.count("checked") == 0
    wrong = web(manager).post(address, {"wanted": "on", "language": "xx"})
    assert wrong.status_code == 422
    assert set(wrong.context["form"].errors) == {"language"}


def test_an_invitation_goes_by_mail_and_its_link_can_be_copied(project, manager):
    address = reverse("annotation:invitations", args=[project.slug])
    page = web(manager).post(address, FORM | {"address": "ann@example.org", "language": "de"})
    letter = Letter.objects.get()
    assert (letter.address, letter.language) == ("ann@example.org", "de")
    said = page.content.decode()
    assert "A mail with it goes to ann@example.org" in said
    assert 'data-copy="new-link"' in said
    assert letter.get_state_display() in said
    ann = make_user("ann")
    assert "invited to Voice queries" in web(ann).get(page.context["link"]).content.decode()
    web(ann).post(page.context["link"], headers={"Accept-Language": "de"})
    assert MailChoice.objects.get(person=ann).language == "de"


def test_a_mail_is_for_one_person_and_not_in_bulk(project, manager, monkeypatch):
    address = reverse("annotation:invitations", args=[project.slug])
    wanted = FORM | {"address": "ann@example.org", "language": "en"}
    refused = web(manager).post(address, wanted | {"maximum_uses": 3})
    assert refused.status_code == 422
    assert "for one person" in refused.content.decode()
    assert web(manager).post(address, wanted | {"address": "nobody"}).status_code == 422
    assert not Invitation.objects.exists()
    monkeypatch.setattr(letters, "MAILS", 2)
    answers = [web(manager).post(address, wanted).status_code for _time in range(3)]
    assert answers == [200, 200, 429]
    assert Letter.objects.count() == 2


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("kind", MailKind.values)
def test_every_letter_leads_to_a_page_that_is_there(project, manager, kind, language):
    notice = Notice(person=manager, project=project, kind=kind, subject="x", facts={"version": 3, "limit": 2.5})
    with translation.override(language):
        written = letter_words.letter_about(notice)
        html = written.as_html()
    assert f'lang="{language}"' in html
    item = written.item
    path = item.link.removeprefix("http://127.0.0.1:8000").partition("?")[0]
    assert resolve(path).kwargs["slug"] == project.slug
    assert item.link in written.as_text()
    assert written.subject == item.headline
    assert "Voice queries" in written.subject


def test_what_is_left_out_of_a_choice_stays():
    ann, ben = make_user("ann"), make_user("ben")
    letters.choose_mails(person=ben, language="en", wanted=True)
    program = Caller(ann)
    before = program.get("mails").json()
    assert (before["wanted"], before["address"]) == (True, "")
    chosen = program.patch("mails", {"wanted": False}).json()
    assert not chosen["wanted"]
    again = program.patch("mails", {"language": "de"}).json()
    assert again == chosen | {"language": "de"} == program.get("mails").json()
    kept = MailChoice.objects.get(person=ann)
    assert (kept.wanted, kept.language) == (False, "de")
    assert MailChoice.objects.get(person=ben).wanted
    assert list(Action.objects.values_list("actor", "route", "project")) == [("ann", "api:choose_mails", None)] * 2
