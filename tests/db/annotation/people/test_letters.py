from datetime import timedelta
from itertools import pairwise

import pytest
from allauth.account.models import EmailAddress
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils import timezone

from annotation.models import Membership, Role
from annotation.models.letters import Letter, LetterState, MailKind, Notice
from annotation.people.services import invitations, letters
from annotation.projects.services import lifecycle
from annotation.work.services import tokens
from tests.factories import add_members, make_project, make_user
from tests.mail_server import mail_server

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tasks(monkeypatch):
    """Nothing reaches a broker; what would is listed."""
    handed = []
    monkeypatch.setattr(
        "annotation.work.services.sending.current_app.send_task",
        lambda _name, kwargs, **_: handed.append(kwargs["letter_id"]),
    )
    return handed


@pytest.fixture
def server(settings, tasks):
    with mail_server() as running:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = running.server_address
        settings.DEFAULT_FROM_EMAIL = "DPAL <dpal@labels.example>"
        settings.SITE_URL = "https://labels.example"
        yield running


def reachable(project, role=Role.ANNOTATOR, address=""):
    person = make_user()
    EmailAddress.objects.create(
        user=person, email=address or f"{person.username}@example.org", verified=True, primary=True
    )
    add_members(project, person, role=role)
    return person


def tell(project, kind=MailKind.RELEASE, subject="version 1", **facts):
    people = letters.members_in_roles(project, (Role.ANNOTATOR, Role.MANAGER))
    return letters.write_notice(
        project=project, people=people, kind=kind, subject=subject, facts=facts or {"version": 1}
    )


def send_all(handed):
    letters.gather_letters()
    for letter_id in list(handed):
        letters.send_letter(letter_id=letter_id)
    handed.clear()


def invite(project, owner, address="ann@example.org", language="en"):
    return letters.invite_by_mail(
        address=address,
        language=language,
        project=project,
        role=Role.ANNOTATOR,
        maximum_uses=1,
        lifetime=timedelta(days=2),
        owner=owner,
    )


def test_each_event_comes_in_a_letter_of_its_own_and_once(server, tasks):
    project = make_project(name="Voice <queries>")
    person = reachable(project)
    assert (tell(project), tell(project)) == (1, 0)
    tell(project, kind=MailKind.RETURNED, subject="at 9")
    send_all(tasks)
    send_all(tasks)
    mail, other = server.taken
    letter = Letter.objects.get(notices__kind=MailKind.RELEASE)
    assert (letter.state, letter.sent_at is not None) == (LetterState.SENT, True)
    assert mail["To"] == f"{person.username}@example.org"
    assert mail["Subject"] == "Voice <queries>: version 1 is released"
    assert other["Subject"] == "Voice <queries>: look at an answer again"
    assert mail["Message-ID"] == f"<{letter.pk.hex}@labels.example>"
    assert mail["Auto-Submitted"] == "auto-generated"
    text, html = (part.get_content() for part in mail.iter_parts())
    for said in ("version 1 is released", f"https://labels.example/projects/{project.slug}/"):
        assert said in text
        assert said in html
    assert "Voice <queries>" in text
    assert "Voice &lt;queries&gt;" in html
    assert "https://labels.example/mails/" in text
    # Nothing is fetched from anywhere by looking at it.
    assert not [loading for loading in ("<img", "<script", "<link", "url(", "src=") if loading in html]


def test_a_letter_that_was_sent_is_not_sent_again(server, tasks):
    project = make_project()
    reachable(project)
    tell(project)
    letters.gather_letters()
    (letter_id,) = set(tasks)
    for _again in range(3):
        letters.send_letter(letter_id=letter_id)
    assert len(server.taken) == 1


def test_whose_worker_died_keeps_its_id(server, tasks):
    project = make_project()
    reachable(project)
    tell(project)
    send_all(tasks)
    # As if the worker had died between the server's answer and its own note.
    Letter.objects.update(state=LetterState.WAITING, sent_at=None, next_at=Now())
    send_all(tasks)
    first, second = server.taken
    assert first["Message-ID"] == second["Message-ID"]


def test_a_server_that_is_busy_is_asked_again_and_one_that_refuses_is_not(server, tasks, caplog):
    project = make_project()
    reachable(project, address="busy@example.org")
    tell(project)
    server.answers = ["451 later", "550 nobody of that name"]
    for state in (LetterState.WAITING, LetterState.GIVEN_UP):
        send_all(tasks)
        assert Letter.objects.get().state == state
        Letter.objects.update(next_at=Now())
    send_all(tasks)
    assert server.taken == []
    assert "busy@example.org" not in caplog.text
    assert "was not taken" in caplog.text


def test_a_server_that_is_away_is_tried_with_growing_pauses_and_then_given_up(settings, server, tasks):
    project = make_project()
    reachable(project)
    tell(project)
    settings.EMAIL_PORT = 1
    pauses = []
    for _attempt in range(letters.MAX_ATTEMPTS):
        before = timezone.now()
        send_all(tasks)
        letter = Letter.objects.get()
        pauses.append((letter.next_at - before).total_seconds())
        Letter.objects.filter(state=LetterState.WAITING).update(next_at=Now())
    assert letter.state == LetterState.GIVEN_UP
    assert all(later > 1.5 * sooner for sooner, later in pairwise(pauses[:-1]))


def test_letters_speak_the_readers_language(server, tasks):
    project = make_project()
    person = reachable(project)
    letters.choose_mails(person=person, language="de", wanted=True)
    tell(project)
    send_all(tasks)
    assert "ist veröffentlicht" in server.taken[0]["Subject"]


def test_whoever_left_or_lost_the_project_is_told_nothing(server, tasks):
    left, archived = make_project(), make_project()
    person = reachable(left)
    add_members(archived, person)
    tell(left)
    tell(archived)
    Membership.objects.filter(project=left).delete()
    lifecycle.archive_project(project=archived)
    send_all(tasks)
    assert server.taken == []
    assert set(Letter.objects.values_list("state", flat=True)) == {LetterState.DROPPED}


def test_an_invitation_goes_by_mail_and_leaves_no_secret(server, tasks, client):
    manager = make_user("lead")
    project = make_project(owner=manager)
    invitation, secret = invite(project, manager, language="de")
    stored = Letter.objects.get()
    assert secret.encode() not in bytes(stored.salt)
    assert invitations.find_invitation(secret=secret) == invitation
    send_all(tasks)
    (mail,) = server.taken
    assert mail["Subject"] == f"Sie sind zu {project.name} eingeladen"
    text = mail.get_body(("plain",)).get_content()
    assert f"https://labels.example/join/{secret}/" in text
    assert "lead lädt Sie ein" in text
    stored.refresh_from_db()
    assert (stored.state, stored.address, stored.salt) == (LetterState.SENT, "", None)


def test_an_invitation_that_waits_while_keys_are_replaced_is_the_same(server, tasks, settings):
    manager = make_user()
    invitation, secret = invite(make_project(owner=manager), manager)
    settings.SECRET_KEY = "another key of the same length, more or less"
    tokens.replace_outgoing_key(kept=timedelta(days=1))
    assert tokens.link_secret(b"invitation", bytes(Letter.objects.get().salt)) != secret
    send_all(tasks)
    (mail,) = server.taken
    assert f"https://labels.example/join/{secret}/" in mail.get_body(("plain",)).get_content()
    assert invitations.find_invitation(secret=secret) == invitation


def test_an_invitation_revoked_before_its_letter_left_is_not_sent(server, tasks):
    manager = make_user()
    invitation, _secret = invite(make_project(owner=manager), manager)
    invitations.revoke_invitation(invitation=invitation)
    send_all(tasks)
    assert server.taken == []
    assert set(Letter.objects.values_list("state", flat=True)) == {LetterState.DROPPED}


def test_a_name_cannot_begin_another_header(server, tasks):
    project = make_project(name="Quiet\nBcc: everybody@example.org")
    reachable(project)
    tell(project)
    send_all(tasks)
    assert server.taken[0]["Bcc"] is None
    assert server.taken[0]["Subject"].startswith("Quiet Bcc:")


def test_old_letters_go_and_what_they_told_is_not_told_again(server, tasks):
    project = make_project()
    reachable(project)
    tell(project)
    send_all(tasks)
    Letter.objects.update(created_at=timezone.now() - letters.KEPT - timedelta(1))
    letters.gather_letters()
    assert not Letter.objects.exists()
    assert tell(project) == 0
    send_all(tasks)
    assert len(server.taken) == 1


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("annotation_letter_to_one", {}),
        ("annotation_letter_keeps_no_secret", {"address": "ann@example.org"}),
        ("annotation_letter_sent", {"state": "sent"}),
    ],
)
def test_the_database_refuses_a_letter_that_is_none(name, fields):
    person = None if name == "annotation_letter_to_one" else make_user()
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        Letter.objects.create(person=person, language="en", **fields)


def test_the_database_refuses_a_notice_told_twice():
    project, person = make_project(), make_user()
    own = {"person": person, "project": project, "kind": MailKind.RELEASE, "subject": "version 1"}
    letter = Letter.objects.create(person=person, language="en")
    with pytest.raises(IntegrityError, match="annotation_notice_due_or_told"), transaction.atomic():
        Notice.objects.create(**own, due_at=timezone.now(), letter=letter)
    Notice.objects.create(**own)
    with pytest.raises(IntegrityError, match="annotation_notice_once"), transaction.atomic():
        Notice.objects.create(**own)


@pytest.mark.parametrize(
    ("backend", "leaves"), [("smtp", True), ("locmem", True), ("filebased", False), ("console", False)]
)
def test_mail_that_stays_here_is_known(settings, backend, leaves):
    settings.EMAIL_BACKEND = f"django.core.mail.backends.{backend}.EmailBackend"
    assert letters.leaves_the_site() == leaves
