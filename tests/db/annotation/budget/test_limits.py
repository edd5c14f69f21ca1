"""A higher limit with a second manager: who may approve, what the database refuses, and two at once."""

import json
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.budget.api import EntryOut
from annotation.errors import LimitRequestRefused, RoleRefused
from annotation.models import Membership, Project, Role
from annotation.models.joining import Invitation
from annotation.models.limits import LimitRequest, RequestState
from annotation.models.people import GroupRole
from annotation.people.services import invitations, limits, members
from annotation.projects.services import opening
from privacy.ledger import services as ledger
from privacy.ledger.models import EntryKind, LedgerEntry
from privacy.ledger.selectors import guarantee
from tests.clients import browser_of
from tests.factories import make_user
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def asking() -> User:
    return make_user("ada")


@pytest.fixture
def second(asking: User) -> User:
    return make_user("grace")


@pytest.fixture
def project(asking: User, second: User) -> Project:
    opened = opening.create_project(
        name="Letters", preset="pool-experts", owner=asking, data_kind="text", classes=["yes", "no"], question="Is it?"
    )
    members.add_member(project=opened, user=second, role=Role.MANAGER)
    limits.demand_second_manager(project=opened)
    return opened


def ask(project: Project, actor: User, epsilon: float = 3.0) -> LimitRequest:
    found = limits.change_limit(
        project=project,
        account=project.pool_account,
        epsilon_limit=epsilon,
        delta_limit=5e-6,
        reason="one more model",
        actor=actor,
    )
    assert found is not None
    return found


def limit_of(project: Project) -> float:
    project.pool_account.refresh_from_db()
    return guarantee(project.pool_account).epsilon_limit


def changes_of(project: Project) -> list[LedgerEntry]:
    return list(
        LedgerEntry.objects.filter(account=project.pool_account, kind=EntryKind.LIMIT_CHANGE).order_by("sequence")
    )


def test_a_higher_limit_waits_and_stands_once_another_manager_approves(
    project: Project, asking: User, second: User
) -> None:
    request = ask(project, asking)
    assert limit_of(project) == 2
    limits.approve_request(request_id=request.pk, of=project, actor=second)
    assert limit_of(project) == 3
    (entry,) = changes_of(project)
    assert (entry.actor, entry.reason) == ("ada", "one more model")
    assert json.loads(entry.event_json)["approved_by"] == "grace"
    told_by_rest = [EntryOut.from_orm(each).approved_by for each in LedgerEntry.objects.order_by("sequence")]
    assert told_by_rest == ["", "grace"]
    request.refresh_from_db()
    assert request.used_at is not None


def test_who_asked_may_not_approve(project: Project, asking: User) -> None:
    request = ask(project, asking)
    with pytest.raises(LimitRequestRefused, match="Another manager must approve your request"):
        limits.approve_request(request_id=request.pk, of=project, actor=asking)
    # Nor by any other way: the database says so, too.
    for state in (RequestState.APPROVED, RequestState.REFUSED):
        with pytest.raises(IntegrityError, match="annotation_limitrequest_second_person"), transaction.atomic():
            LimitRequest.objects.filter(pk=request.pk).update(state=state, decided_by=asking, decided_at=timezone.now())
    assert limit_of(project) == 2


def test_the_database_refuses_a_higher_limit_without_an_approval(project: Project, asking: User, second: User) -> None:
    def raise_to(epsilon: float, delta: float = 5e-6) -> None:
        ledger.change_account_limits(
            account=project.pool_account, epsilon_limit=epsilon, delta_limit=delta, actor=asking, reason="alone"
        )

    with pytest.raises(IntegrityError, match="approval of a second manager"):
        raise_to(3)
    with pytest.raises(IntegrityError, match="approval of a second manager"):
        raise_to(1, delta=1e-5)
    # An approval is for its own numbers, and for one entry.
    limits.approve_request(request_id=ask(project, asking, 3.0).pk, of=project, actor=second)
    with pytest.raises(IntegrityError, match="approval of a second manager"):
        raise_to(4)
    raise_to(2)
    with pytest.raises(IntegrityError, match="approval of a second manager"):
        raise_to(3)
    assert limit_of(project) == 2


def test_a_lower_limit_needs_nobody(project: Project, asking: User) -> None:
    assert (
        limits.change_limit(
            project=project,
            account=project.pool_account,
            epsilon_limit=1,
            delta_limit=5e-6,
            reason="enough",
            actor=asking,
        )
        is None
    )
    assert limit_of(project) == 1


def test_without_the_setting_one_manager_is_enough(asking: User) -> None:
    project = opening.create_project(
        name="Alone", preset="pool-experts", owner=asking, data_kind="text", classes=["a", "b"], question="?"
    )
    with pytest.raises(LimitRequestRefused, match="Add a second manager first; otherwise"):
        limits.demand_second_manager(project=project)
    values = {"account": project.pool_account, "epsilon_limit": 3, "delta_limit": 5e-6, "reason": "more"}
    assert limits.change_limit(project=project, actor=asking, **values) is None
    assert limit_of(project) == 3


def test_refused_withdrawn_and_expired_requests_change_nothing(project: Project, asking: User, second: User) -> None:
    refused = ask(project, asking)
    limits.refuse_request(request_id=refused.pk, of=project, actor=second)
    withdrawn = ask(project, asking)
    limits.refuse_request(request_id=withdrawn.pk, of=project, actor=asking)
    late = LimitRequest.objects.create(
        project=project,
        kind="limit",
        account=project.pool_account,
        epsilon_limit_nano=3 * 10**9,
        delta_limit_atto=5 * 10**12,
        reason="long ago",
        requested_by=asking,
        expires_at=timezone.now() - timedelta(minutes=1),
    )
    states = []
    for request in (refused, withdrawn, late):
        with pytest.raises(LimitRequestRefused, match="has expired"):
            limits.approve_request(request_id=request.pk, of=project, actor=second)
        request.refresh_from_db()
        states.append(request.state)
    # What a refused approval did on its way is taken back; asking again closes what is late.
    ask(project, asking)
    late.refresh_from_db()
    assert states[:2] == ["refused", "withdrawn"]
    assert late.state == "expired"
    assert limit_of(project) == 2


def test_an_approval_after_its_time_is_no_approval(project: Project, asking: User, second: User) -> None:
    request = ask(project, asking)
    with pytest.raises(IntegrityError, match="annotation_limitrequest_in_time"), transaction.atomic():
        LimitRequest.objects.filter(pk=request.pk).update(
            state=RequestState.APPROVED, decided_by=second, decided_at=request.expires_at + timedelta(seconds=1)
        )


@pytest.mark.parametrize(
    "change",
    [{"epsilon_limit_nano": 9 * 10**9}, {"reason": "other"}, {"expires_at": timezone.now() + timedelta(days=99)}],
)
def test_what_was_asked_for_is_never_rewritten(project: Project, asking: User, change: dict[str, object]) -> None:
    request = ask(project, asking)
    with pytest.raises(IntegrityError, match="decided on once and never rewritten"), transaction.atomic():
        LimitRequest.objects.filter(pk=request.pk).update(**change)


def test_one_request_at_a_time(project: Project, asking: User, second: User) -> None:
    ask(project, asking)
    with pytest.raises(LimitRequestRefused, match="already waits"):
        ask(project, second, 4.0)


def test_giving_up_the_second_manager_needs_one(project: Project, asking: User, second: User) -> None:
    with pytest.raises(IntegrityError, match="giving up the second manager"), transaction.atomic():
        Project.objects.filter(pk=project.pk).update(second_manager=False)
    request = limits.ask_to_decide_alone(project=project, reason="she leaves", actor=asking)
    with pytest.raises(LimitRequestRefused):
        limits.approve_request(request_id=request.pk, of=project, actor=asking)
    limits.approve_request(request_id=request.pk, of=project, actor=second)
    project.refresh_from_db()
    assert project.second_manager is False
    # The approval is used up.
    limits.demand_second_manager(project=project)
    with pytest.raises(IntegrityError, match="giving up the second manager"), transaction.atomic():
        Project.objects.filter(pk=project.pk).update(second_manager=False)


class TestAppointingManagers:
    """Nobody makes a second account of their own the second manager."""

    @pytest.fixture
    def double(self) -> User:
        return make_user("ada-too")

    def is_manager(self, project: Project, user: User) -> bool:
        return Membership.objects.filter(project=project, user=user, role=Role.MANAGER).exists()

    def test_by_an_invitation(self, project: Project, asking: User, double: User) -> None:
        client, other = Client(), Client()
        client.force_login(asking)
        other.force_login(double)
        sent = {"role": "manager", "maximum_uses": 1, "days": 1}
        made = client.post(reverse("annotation:invitations", args=[project.slug]), sent)
        assert made.status_code == 409
        assert "Another manager must approve" in made.content.decode()
        # Nor by one from before the rule, nor by one that somebody wrote into the table.
        _, secret = invitations.create_invitation(
            project=project, role=Role.ENGINEER, maximum_uses=1, lifetime=timedelta(days=1), owner=asking
        )
        Invitation.objects.update(role=Role.MANAGER)
        assert other.post(reverse("annotation:join", args=[secret])).status_code == 409
        assert not self.is_manager(project, double)
        assert Invitation.objects.get().uses == 0

    def test_by_the_page_of_people_it_waits_for_another_manager(
        self, project: Project, asking: User, second: User, double: User
    ) -> None:
        client = browser_of(asking)
        sent = {"username": double.username, "role": "manager"}
        waiting = reverse("annotation:limit_requests", args=[project.slug])
        assert client.post(reverse("annotation:people", args=[project.slug]), sent)["Location"] == waiting
        assert "a further manager: ada-too" in client.get(waiting).content.decode()
        request = LimitRequest.objects.get()
        decide = reverse("annotation:decide_limit", args=[project.slug, request.pk])
        assert client.post(decide, {"decision": "approve"}).status_code == 409
        assert not self.is_manager(project, double)
        client.force_login(second)
        assert client.post(decide, {"decision": "approve"}).status_code == 302
        assert self.is_manager(project, double)
        request.refresh_from_db()
        assert request.used_at is not None

    def test_by_a_group(self, project: Project, asking: User, double: User) -> None:
        group = Group.objects.create(name="Night shift")
        group.user_set.add(double)
        with pytest.raises(RoleRefused):
            members.give_role(group=group, project=project, role=Role.MANAGER)
        members.give_role(group=group, project=project, role=Role.ENGINEER)
        with pytest.raises(IntegrityError, match="no group makes managers"), transaction.atomic():
            GroupRole.objects.create(group=group, project=project, role=Role.MANAGER)
        assert not self.is_manager(project, double)

    def test_a_group_that_makes_managers_stands_in_the_way_of_the_rule(self, asking: User, second: User) -> None:
        open_one = opening.create_project(
            name="Open", preset="pool-experts", owner=asking, data_kind="text", classes=["a", "b"], question="?"
        )
        group = Group.objects.create(name="Night shift")
        group.user_set.add(second)
        given = members.give_role(group=group, project=open_one, role=Role.MANAGER)
        with pytest.raises(LimitRequestRefused, match="Managers are appointed one by"):
            limits.demand_second_manager(project=open_one)
        with pytest.raises(IntegrityError, match="no group makes managers"), transaction.atomic():
            Project.objects.filter(pk=open_one.pk).update(second_manager=True)
        members.add_member(project=open_one, user=second, role=Role.MANAGER)
        members.take_role(given=given)
        limits.demand_second_manager(project=open_one)

    def test_by_the_administration_only_to_what_another_person_asked(
        self, project: Project, asking: User, double: User
    ) -> None:
        User.objects.filter(pk=asking.pk).update(is_staff=True, is_superuser=True)
        client, page = Client(), reverse("admin:annotation_membership_add")
        client.force_login(asking)
        sent = {"project": project.pk, "user": double.pk, "role": Role.MANAGER}
        assert client.post(page, sent).status_code == 409
        assert limits.appoint_manager(project=project, user=double, actor=asking) is not None
        # Who asked is the administrator, too.
        assert client.post(page, sent).status_code == 409
        assert not self.is_manager(project, double)
        # The way out where the second manager is gone: somebody else who answers for the site.
        client.force_login(make_user("root", is_staff=True, is_superuser=True))
        assert client.post(page, sent).status_code == 302
        assert self.is_manager(project, double)
        assert LimitRequest.objects.get().decided_by.username == "root"

    def test_the_database_refuses_whoever_was_not_agreed_to(
        self, project: Project, asking: User, second: User, double: User
    ) -> None:
        def refused(act) -> None:
            with pytest.raises(IntegrityError, match="a further manager of this project"), transaction.atomic():
                act()

        refused(lambda: Membership.objects.create(project=project, user=double, role=Role.MANAGER))
        engineer = Membership.objects.create(project=project, user=double, role=Role.ENGINEER)
        rows = Membership.objects.filter(pk=engineer.pk)
        refused(lambda: rows.update(role=Role.MANAGER))
        refused(lambda: Membership.objects.filter(project=project, user=second).update(user=double))
        # An approval is for its person, and for once.
        request = limits.appoint_manager(project=project, user=double, actor=asking)
        assert request is not None
        limits.approve_request(request_id=request.pk, of=project, actor=second)
        refused(lambda: Membership.objects.create(project=project, user=make_user(), role=Role.MANAGER))
        members.remove_member(project=project, user=double, role=Role.MANAGER)
        refused(lambda: Membership.objects.create(project=project, user=double, role=Role.MANAGER))
        with pytest.raises(IntegrityError, match="never rewritten"), transaction.atomic():
            LimitRequest.objects.update(appointee=make_user())

    def test_who_is_one_already_and_other_roles_need_nobody(self, project: Project, second: User, double: User) -> None:
        members.add_member(project=project, user=second, role=Role.MANAGER)
        assert limits.appoint_manager(project=project, user=second, actor=second) is None
        members.add_member(project=project, user=double, role=Role.ENGINEER)
        assert not LimitRequest.objects.exists()

    def test_nobody_asks_for_themselves(self, project: Project, double: User) -> None:
        with pytest.raises(IntegrityError, match="annotation_limitrequest_shape"), transaction.atomic():
            limits.appoint_manager(project=project, user=double, actor=double)


def outcomes_of(*calls) -> list[str]:
    found = at_once(*calls, refusals=(LimitRequestRefused, IntegrityError))
    return sorted(each.__name__ if isinstance(each, type) else "done" for each in found)


def test_two_who_approve_at_once_make_one_entry(project: Project, asking: User, second: User) -> None:
    third = make_user("joan")
    appointed = limits.appoint_manager(project=project, user=third, actor=asking)
    assert appointed is not None
    limits.approve_request(request_id=appointed.pk, of=project, actor=second)
    request = ask(project, asking)
    outcomes = outcomes_of(
        *(
            lambda who=who: limits.approve_request(request_id=request.pk, of=project, actor=who)
            for who in (second, third)
        )
    )
    assert outcomes == ["LimitRequestRefused", "done"]
    assert len(changes_of(project)) == 1


def test_approving_and_withdrawing_at_once_leaves_one_of_both(project: Project, asking: User, second: User) -> None:
    request = ask(project, asking)
    outcomes = outcomes_of(
        lambda: limits.approve_request(request_id=request.pk, of=project, actor=second),
        lambda: limits.refuse_request(request_id=request.pk, of=project, actor=asking),
    )
    request.refresh_from_db()
    assert outcomes == ["LimitRequestRefused", "done"]
    assert limit_of(project) == (3 if request.state == "approved" else 2)
    assert len(changes_of(project)) == (request.state == "approved")


def test_two_who_ask_at_once_make_one_request(project: Project, asking: User, second: User) -> None:
    outcomes = outcomes_of(lambda: ask(project, asking), lambda: ask(project, second, 4.0))
    assert outcomes == ["LimitRequestRefused", "done"]
    assert LimitRequest.objects.count() == 1


def test_the_pages_ask_show_and_decide(project: Project, asking: User, second: User) -> None:
    clients = {}
    for user in (asking, second):
        clients[user.username] = Client()
        clients[user.username].force_login(user)
    page = reverse("annotation:change_limit", args=[project.slug, project.pool_account_id])
    shown = clients["ada"].get(page).content.decode()
    assert "higher ones after another manager" in shown
    assert "An attacker guesses right at most" in shown
    sent = {"level": "loose", "epsilon_limit": "2", "delta_limit": "5e-6", "reason": "one more model"}
    waiting = reverse("annotation:limit_requests", args=[project.slug])
    assert clients["ada"].post(page, sent)["Location"] == waiting
    assert "Take back" in clients["ada"].get(waiting).content.decode()
    assert "Approve" in clients["grace"].get(waiting).content.decode()
    request = LimitRequest.objects.get()
    decide = reverse("annotation:decide_limit", args=[project.slug, request.pk])
    assert clients["ada"].post(decide, {"decision": "approve"}).status_code == 409
    assert limit_of(project) == 2
    assert clients["grace"].post(decide, {"decision": "approve"}).status_code == 302
    assert limit_of(project) == 4
    assert "approved by grace" in clients["ada"].get(reverse("annotation:budget", args=[project.slug])).content.decode()
