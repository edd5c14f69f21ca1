"""Invitations and crowd links: who may make them, whom they let in, and when they end."""

import json
import re
from collections import Counter
from datetime import timedelta
from unittest.mock import ANY

import pytest
from django.contrib.auth.models import Group, User
from django.core import mail
from django.db import IntegrityError, OperationalError, connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.errors import InvalidConfiguration, LinkEnded, RoleRefused
from annotation.models import Assignment, Configuration, Membership, Project, Role
from annotation.models.joining import CrowdLink, CrowdParticipant, Invitation
from annotation.models.letters import Letter
from annotation.models.people import IdempotentAnswer
from annotation.people.services import crowd_links, invitations, letters, members
from annotation.questions.services import labelling, labels, queue
from tests.factories import add_members, make_candidates, make_manager, make_project, make_user, open_preset
from tests.programs import Caller
from tests.threads import at_once

pytestmark = pytest.mark.django_db
PARAMETERS = {"PROLIFIC_PID": "5f00000000000000000000aa", "STUDY_ID": "study1", "SESSION_ID": "s1"}


@pytest.fixture
def crowd(manager: User):
    project = make_project(owner=manager, oracle="crowd", name="Voice queries")
    add_members(project, manager, role=Role.MANAGER)
    return project


def web(user: User | None = None) -> Client:
    client = Client()
    if user is not None:
        client.force_login(user)
    return client


def invite(project, manager, **changes):
    values = {"role": Role.ANNOTATOR, "maximum_uses": 1, "lifetime": timedelta(days=1), **changes}
    return invitations.create_invitation(project=project, owner=manager, **values)


def make_link(project, manager, **changes) -> CrowdLink:
    values = {
        "platform": "prolific",
        "study": "study1",
        "answers_wanted": 2,
        "maximum_participants": 1,
        "lifetime": timedelta(days=1),
    }
    link, link.token = crowd_links.create_link(project=project, owner=manager, **(values | changes))
    return link


class TestInvitations:
    def test_a_manager_makes_a_link_and_somebody_joins_once(self, crowd, manager):
        page = web(manager).post(
            reverse("annotation:invitations", args=[crowd.slug]),
            {"role": "annotator", "maximum_uses": 1, "days": 3, "note": "for Ann"},
        )
        link = page.context["link"]
        secret = link.rstrip("/").rsplit("/", 1)[1]
        assert secret not in {invitation.digest for invitation in Invitation.objects.all()}
        ann = make_user("ann")
        assert "invited to Voice queries" in web(ann).get(link).content.decode()
        assert not Membership.objects.filter(user=ann).exists()
        web(ann).post(link)
        web(ann).post(link)
        assert list(Membership.objects.filter(user=ann).values_list("role", flat=True)) == ["annotator"]
        assert web(make_user()).get(link).status_code == 410

    @pytest.mark.parametrize("change", [{"expires_at": timezone.now() - timedelta(1)}, {"revoked_at": timezone.now()}])
    def test_an_ended_link_looks_like_a_wrong_one(self, crowd, manager, change):
        invitation, secret = invite(crowd, manager)
        Invitation.objects.filter(pk=invitation.pk).update(**change)
        ended = web(make_user()).get(reverse("annotation:join", args=[secret]))
        wrong = web(make_user()).get(reverse("annotation:join", args=["x" * 43]))
        assert ended.status_code == wrong.status_code == 410
        assert ended.context["reason"] == wrong.context["reason"]

    @pytest.mark.parametrize("by_group", [False, True])
    def test_a_removed_manager_has_no_way_back_in(self, crowd, manager, by_group):
        other, place = make_user("other"), Group.objects.create(name="managers")
        if by_group:
            members.give_role(group=place, project=crowd, role=Role.MANAGER)
            other.groups.add(place)
        else:
            add_members(crowd, other, role=Role.MANAGER)
        _, secret = invite(crowd, other, role=Role.MANAGER, note="for later")
        _, kept = invite(crowd, manager)
        link = make_link(crowd, other)
        if by_group:
            other.groups.clear()
        else:
            membership = Membership.objects.get(project=crowd, user=other)
            page = web(manager).post(reverse("annotation:remove_member", args=[crowd.slug, membership.pk]), follow=True)
            assert "for later, study1" in page.content.decode()
        assert web(other).get(reverse("annotation:join", args=[secret])).status_code == 410
        assert web(make_user()).get(reverse("annotation:join", args=[kept])).status_code == 200
        with pytest.raises(LinkEnded):
            crowd_links.join(link=link, pid="new")

    def test_guessing_is_slowed_down(self, crowd):
        client = web()
        address = reverse("annotation:join", args=["guess"])
        assert [client.get(address).status_code for _ in range(31)][-2:] == [410, 429]

    def test_a_visitor_with_an_invitation_may_open_an_account(self, crowd, manager):
        _, secret = invite(crowd, manager)
        client = web()
        assert "By invitation" in client.get(reverse("account_signup")).content.decode()
        client.get(reverse("annotation:join", args=[secret]))
        assert "password1" in client.get(reverse("account_signup")).content.decode()


@pytest.mark.django_db(transaction=True)
class TestManyAtOnce:
    def at_once(self, *calls):
        found = at_once(*calls, refusals=(LinkEnded, IntegrityError, OperationalError))
        return Counter(each.__name__ if isinstance(each, type) else each for each in found)

    def test_the_places_are_given_once_and_the_rest_are_told(self, crowd, manager):
        invitation, _ = invite(crowd, manager, maximum_uses=3)
        people = [make_user() for _ in range(20)]
        took = self.at_once(
            *(lambda user=user: invitations.accept_invitation(invitation=invitation, user=user) for user in people)
        )
        assert took == {True: 3, "LinkEnded": 17}
        invitation.refresh_from_db()
        assert invitation.uses == 3
        assert Membership.objects.filter(user__in=people).count() == 3

    def test_one_person_takes_one_place(self, crowd, manager):
        invitation, _ = invite(crowd, manager, maximum_uses=5)
        ann = make_user()
        took = self.at_once(*[lambda: invitations.accept_invitation(invitation=invitation, user=ann) for _ in range(8)])
        assert took == {True: 1, False: 7}
        invitation.refresh_from_db()
        assert invitation.uses == 1


class TestCrowdLinks:
    def start(self, link: CrowdLink, client: Client | None = None, **changes):
        client = client or web()
        query = {**PARAMETERS, **changes}
        address = reverse("annotation:crowd_start", args=[link.token])
        shown = client.get(address, query)
        return client, shown, client.post(address, query)

    @pytest.mark.django_db(transaction=True)
    def test_from_the_platform_to_the_code(self, crowd, manager):
        queries = make_candidates(crowd, ["play jazz", "stop", "louder"])
        queue.open_queries(project=crowd, round_number=1, query_ids=[query.pk for query in queries])
        link = make_link(crowd, manager)
        client, shown, started = self.start(link)
        assert "Begin" in shown.content.decode()
        assert started["Location"] == reverse("annotation:label", args=[crowd.slug])
        done = reverse("annotation:crowd_done", args=[crowd.slug])
        for number in range(2):
            assert link.completion_code not in client.get(done).content.decode()
            assert client.get(started["Location"]).status_code == 200, number
            assignment = Assignment.objects.get(state="leased")
            client.post(reverse("annotation:submit", args=[assignment.pk]), {"choice": 0})
        assert client.get(started["Location"])["Location"] == done
        assert f"complete?cc={link.completion_code}" in client.get(done).content.decode()
        participant = CrowdParticipant.objects.get()
        assert participant.completed_at is not None
        assert PARAMETERS["PROLIFIC_PID"].encode() not in bytes(participant.pid_digest)

    @pytest.mark.django_db(transaction=True)
    def test_who_came_for_one_task_is_led_to_it_and_offered_nothing_else(self, crowd, manager):
        """Not an account, letters or tokens, and no list of projects that promises a question after the code."""
        queries = make_candidates(crowd, ["play jazz", "stop", "louder"])
        queue.open_queries(project=crowd, round_number=1, query_ids=[query.pk for query in queries])
        client, _, started = self.start(make_link(crowd, manager))
        label, done = started["Location"], reverse("annotation:crowd_done", args=[crowd.slug])
        others = [reverse(name) for name in ("annotation:tokens", "account_email", "annotation:mails")]
        page = client.get(label).content.decode()
        assert not [address for address in others if f'href="{address}"' in page]
        assert reverse("logout") in page
        assert client.get(reverse("annotation:projects"))["Location"] == label
        for _number in range(2):
            client.get(label)
            assignment = Assignment.objects.get(state="leased")
            client.post(reverse("annotation:submit", args=[assignment.pk]), {"choice": 0})
        assert client.get(reverse("annotation:projects"), follow=True).redirect_chain[-1][0] == done
        # Everybody else has all of it.
        page = web(manager).get(reverse("annotation:projects")).content.decode()
        assert [address for address in others if f'href="{address}"' in page] == others
        # Nobody is sent back and forth once they are not asked any more.
        Membership.objects.filter(project=crowd, role=Role.ANNOTATOR).delete()
        assert client.get(reverse("annotation:projects")).status_code == 200

    def test_looking_makes_no_account_and_coming_back_makes_no_second(self, crowd, manager):
        link = make_link(crowd, manager)
        web().get(reverse("annotation:crowd_start", args=[link.token]), PARAMETERS)
        assert not CrowdParticipant.objects.exists()
        self.start(link)
        self.start(link)
        assert CrowdParticipant.objects.count() == 1
        again = make_link(crowd, manager)
        self.start(again)
        assert len(set(CrowdParticipant.objects.values_list("user", flat=True))) == 1

    def test_its_address_is_shown_once_and_nothing_that_is_stored_leads_in(self, crowd, manager):
        client, page = web(manager), reverse("annotation:crowd_links", args=[crowd.slug])
        sent = {"platform": "prolific", "study": "s", "answers_wanted": 1, "maximum_participants": 1, "days": 1}
        shown = client.post(page, sent).content.decode()
        token = re.search(r"/crowd/([^/]+)/\?PROLIFIC_PID=", shown)[1]
        assert len(token) == 32
        start = reverse("annotation:crowd_start", args=[token])
        assert web().get(start, PARAMETERS | {"STUDY_ID": "s"}).status_code == 200
        later = client.get(page)
        assert token not in later.content.decode()
        assert "0 of 1 participants" in later.content.decode()
        with connection.cursor() as cursor:
            cursor.execute("SELECT link::text FROM annotation_crowdlink link")
            (stored,) = cursor.fetchone()
        assert token not in stored
        for kept in re.findall(r"[\w-]{20,}", stored):
            assert web().get(reverse("annotation:crowd_start", args=[kept]), PARAMETERS).status_code == 410

    def test_a_full_ended_or_foreign_study_lets_nobody_in(self, crowd, manager):
        link = make_link(crowd, manager)
        self.start(link)
        assert self.start(link, PROLIFIC_PID="another")[2].status_code == 410
        assert self.start(link, STUDY_ID="other")[1].status_code == 410
        ended = make_link(crowd, manager, maximum_participants=5)
        crowd_links.revoke_link(link=ended)
        assert self.start(ended, PROLIFIC_PID="another")[2].status_code == 410

    def test_mechanical_turk_previews_before_it_begins(self, crowd, manager):
        link = make_link(crowd, manager, platform="mturk", study="hit1")
        address = reverse("annotation:crowd_start", args=[link.token])
        preview = {"workerId": "A1", "hitId": "hit1", "assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"}
        assert "preview" in web().get(address, preview).content.decode()
        web().post(address, preview)
        assert not CrowdParticipant.objects.exists()
        web().post(address, preview | {"assignmentId": "a1"})
        assert CrowdParticipant.objects.count() == 1

    def test_somebody_else_in_this_browser_is_not_replaced(self, crowd, manager):
        _client, shown, _ = self.start(make_link(crowd, manager), web(manager))
        assert "Log out first" in shown.content.decode()
        assert not CrowdParticipant.objects.exists()

    def test_without_an_id_nothing_begins(self, crowd, manager):
        _, shown, started = self.start(make_link(crowd, manager), PROLIFIC_PID="no id!")
        assert shown.status_code == started.status_code == 422

    def test_never_into_a_project_that_shows_records(self, manager):
        trusted = make_project(owner=manager)
        with pytest.raises(InvalidConfiguration):
            make_link(trusted, manager)
        link = make_link(make_project(oracle="crowd"), manager)
        with pytest.raises(IntegrityError, match="opened to a crowd"), transaction.atomic():
            CrowdLink.objects.filter(pk=link.pk).update(project=trusted)

    def test_an_empty_queue_gives_the_code_and_a_pause_does_not(self, crowd, manager):
        link = make_link(crowd, manager, maximum_participants=2)
        client, _, _ = self.start(link)
        Membership.objects.filter(user=CrowdParticipant.objects.get().user).update(
            paused_at=timezone.now(), pause_reason="checks"
        )
        done = reverse("annotation:crowd_done", args=[crowd.slug])
        assert link.completion_code not in client.get(done).content.decode()
        Membership.objects.update(paused_at=None, pause_reason="")
        assert link.completion_code in client.get(done).content.decode()
        assert web(manager).get(done).status_code == 403


class TestParticipants:
    """Whoever came by a platform has no password and no second factor: what its link gave them is all they get."""

    @pytest.fixture
    def participant(self, crowd, manager) -> User:
        return crowd_links.join(link=make_link(crowd, manager), pid="somebody").user

    @pytest.fixture
    def trusted(self, manager):
        project = make_project(owner=manager)
        add_members(project, manager, role=Role.MANAGER)
        return project

    @pytest.mark.parametrize("role", [Role.ANNOTATOR, Role.ENGINEER, Role.MANAGER])
    def test_takes_no_invitation(self, participant, trusted, manager, role):
        invitation, secret = invite(trusted, manager, role=role)
        page = reverse("annotation:join", args=[secret])
        client = web(participant)
        shown = client.get(page).content.decode()
        assert "Log out first" in shown
        assert "Join as" not in shown
        assert client.post(page).status_code == 409
        assert not Membership.objects.filter(project=trusted, user=participant).exists()
        invitation.refresh_from_db()
        assert invitation.uses == 0
        labels_page = reverse("annotation:download_labels", args=[trusted.slug, "csv"])
        assert client.get(labels_page).status_code == 404

    def test_takes_none_after_a_login_either(self, participant, trusted, manager):
        """A participant may set a password: the login that follows an invitation takes it, for everybody else."""
        participant.set_password("correct horse battery")
        participant.save()
        _, secret = invite(trusted, manager)
        page = reverse("annotation:join", args=[secret])
        client = web()
        client.get(page)
        sent = {"login": participant.username, "password": "correct horse battery", "next": page}
        assert client.post(reverse("login"), sent)["Location"] == page
        assert not Membership.objects.filter(project=trusted, user=participant).exists()

    def test_is_given_no_role_by_a_manager_or_an_administrator(self, participant, trusted, crowd, manager):
        for project in (trusted, crowd):
            for role in set(Role) - ({Role.ANNOTATOR} if project == crowd else set()):
                sent = {"username": participant.username, "role": role}
                address = reverse("annotation:people", args=[project.slug])
                assert web(manager).post(address, sent).status_code == 409, (project, role)
        administrator = make_user("root", is_staff=True, is_superuser=True)
        sent = {"project": trusted.pk, "user": participant.pk, "role": Role.ANNOTATOR}
        assert web(administrator).post(reverse("admin:annotation_membership_add"), sent).status_code == 409
        assert list(participant.memberships.values_list("project", "role")) == [(crowd.pk, "annotator")]

    def test_opens_no_project(self, participant):
        with pytest.raises(RoleRefused):
            open_preset(participant, "pool-experts", name="Mine", data_kind="text", classes=["a", "b"], question="?")

    @pytest.mark.parametrize("role", list(Role))
    def test_the_database_refuses_any_other_role(self, participant, trusted, crowd, role):
        member = participant.memberships.get()
        with pytest.raises(IntegrityError, match="takes no other role"), transaction.atomic():
            Membership.objects.create(project=trusted, user=participant, role=role)
        with pytest.raises(IntegrityError, match="takes no other role"), transaction.atomic():
            Membership.objects.filter(pk=member.pk).update(project=trusted, role=role)
        somebody = Membership.objects.create(project=trusted, user=make_user(), role=role)
        with pytest.raises(IntegrityError, match="takes no other role"), transaction.atomic():
            Membership.objects.filter(pk=somebody.pk).update(user=participant)
        # Once the project shows records, the link that led there is no reason any more.
        member.delete()
        crowd.crowd_links.update(revoked_at=timezone.now())
        held = trusted.configuration
        now = {"project": crowd, "version": crowd.configuration.version + 1}
        following = Configuration.objects.create(**now, document=held.document, digest=held.digest)
        shows = {"oracle": "trusted", "preset": trusted.preset, "privacy_unit": trusted.privacy_unit}
        Project.objects.filter(pk=crowd.pk).update(configuration=following, labels_account=None, **shows)
        with pytest.raises(IntegrityError, match="takes no other role"), transaction.atomic():
            Membership.objects.create(project=crowd, user=participant, role=Role.ANNOTATOR)

    def test_nobody_who_is_somebody_becomes_one(self, crowd, trusted, manager):
        link = make_link(crowd, manager)
        engineer, place, chief = make_user(), make_user(), make_user(is_staff=True)
        add_members(trusted, engineer, role=Role.ENGINEER)
        group = Group.objects.create(name="Night shift")
        group.user_set.add(place)
        for number, user in enumerate((manager, engineer, place, chief)):
            with pytest.raises(IntegrityError, match="takes no other role"), transaction.atomic():
                CrowdParticipant.objects.create(link=link, user=user, pid_digest=bytes([number] * 16))

    def test_is_let_back_in_where_the_link_leads(self, participant, crowd, manager):
        members.remove_member(project=crowd, user=participant, role=Role.ANNOTATOR)
        members.add_member(project=crowd, user=participant, role=Role.ANNOTATOR)
        assert participant.memberships.count() == 1


@pytest.mark.django_db(transaction=True)
def test_answers_before_the_link_do_not_count(crowd, manager):
    queries = make_candidates(crowd, ["play jazz", "stop"])
    queue.open_queries(project=crowd, round_number=1, query_ids=[query.pk for query in queries])
    first = crowd_links.join(link=make_link(crowd, manager), pid="p")
    labels.submit_label(assignment=queue.claim_next(project=crowd, user=first.user), choice=0)
    second = crowd_links.join(link=make_link(crowd, manager), pid="p")
    second.created_at = timezone.now()
    assert (labelling.answers_of(first), labelling.answers_of(second)) == (1, 0)


@pytest.fixture
def link_crowd():
    return make_project(oracle="crowd")


def test_an_invitation_lets_somebody_in_until_it_is_revoked(project):
    program, at = Caller(make_manager(project)), f"projects/{project.slug}/invitations"
    made = program.post(at, {"role": "engineer", "note": "for Ann", "days": 3}, key="one")
    assert made.status_code == 201
    told = made.json()
    link = told.pop("link")
    assert told == {
        "invitation": ANY,
        "role": "engineer",
        "note": "for Ann",
        "uses": 0,
        "maximum_uses": 1,
        "expires_at": ANY,
        "mail": "",
    }
    assert program.get(at).json() == [told]
    # Its secret is in no list and kept by no key: sent again, it is another one.
    assert link.rstrip("/").rsplit("/", 1)[1] not in json.dumps(program.get(at).json())
    assert program.post(at, {"role": "engineer"}, key="one").json()["link"] != link
    assert not IdempotentAnswer.objects.exists()
    ann, client = make_user("ann"), Client()
    client.force_login(ann)
    assert client.post(link.removeprefix("http://testserver")).status_code == 302
    assert Membership.objects.get(user=ann).role == Role.ENGINEER
    second = Invitation.objects.latest("pk")
    assert program.delete(f"{at}/{second.pk}").status_code == 204
    assert program.get(at).json() == []


def test_an_invitation_goes_by_mail_to_one_person(project):
    program, at = Caller(make_manager(project)), f"projects/{project.slug}/invitations"
    asked = {"role": "annotator", "address": "ann@example.org", "language": "de"}
    both = program.post(at, asked | {"maximum_uses": 2})
    assert both.status_code == 422
    assert "A mailed invitation is for one person." in both.json()["detail"]
    assert program.post(at, asked | {"address": "nobody"}).status_code == 422
    assert not Invitation.objects.exists()
    made = program.post(at, asked)
    assert (made.status_code, made.json()["mail"]) == (201, "waiting")
    letter = Letter.objects.get()
    assert (letter.address, letter.language) == ("ann@example.org", "de")
    assert "ann@example.org" not in made.content.decode()
    letters.send_letter(letter_id=str(letter.pk))
    assert made.json()["link"].removeprefix("http://testserver") in mail.outbox[0].body
    assert program.get(at).json()[0]["mail"] == "sent"


def test_a_crowd_link_is_told_once_and_closed(link_crowd):
    program, at = Caller(make_manager(link_crowd)), f"projects/{link_crowd.slug}/crowd-links"
    sent = {"platform": "prolific", "study": "study1", "answers_wanted": 2, "maximum_participants": 3}
    made = program.post(at, sent)
    assert made.status_code == 201
    told = made.json()
    address = told.pop("address")
    assert address.endswith("/?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}")
    link = CrowdLink.objects.get()
    assert told == sent | {
        "crowd_link": link.pk,
        "participants": 0,
        "completion_code": link.completion_code,
        "expires_at": ANY,
        "signed": False,
    }
    assert program.get(at).json() == [told]
    asked = address.removeprefix("http://testserver").split("?")[0]
    query = {"PROLIFIC_PID": "5f00000000000000000000aa", "STUDY_ID": "study1", "SESSION_ID": "s1"}
    assert Client().get(asked, query).status_code == 200
    assert program.delete(f"{at}/{link.pk}").status_code == 204
    assert program.get(at).json() == []
    assert program.delete(f"{at}/0").status_code == 404
