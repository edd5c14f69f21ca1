"""The pages of groups: an administrator keeps them, a manager uses them, whoever holds an invitation joins."""

from datetime import timedelta

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from annotation.models import Membership, Role
from annotation.models.groups import PeopleGroup
from annotation.models.history import Action
from annotation.people.services import groups, invitations
from tests.factories import add_members, make_project, make_user
from tests.markup import tight

pytestmark = pytest.mark.django_db


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def root() -> User:
    return make_user("root", is_staff=True, is_superuser=True)


@pytest.fixture
def group(root: User) -> PeopleGroup:
    return groups.create_group(name="Night shift", owner=root)


@pytest.fixture
def boss() -> User:
    return make_user("boss")


@pytest.fixture
def project(boss: User):
    opened = make_project(owner=boss)
    add_members(opened, boss, role=Role.MANAGER)
    return opened


def in_group(group) -> list[str]:
    return list(group.members.order_by("user__username").values_list("user__username", flat=True))


def test_a_group_is_made_named_filled_and_deleted(root, project) -> None:
    client, ann = browser(root), make_user("ann")
    made = client.post(reverse("annotation:groups"), {"name": "Day shift"}, follow=True)
    group = PeopleGroup.objects.get(name="Day shift")
    assert made.redirect_chain == [(reverse("annotation:group", args=[group.pk]), 302)]
    assert "Day shift" in client.get(reverse("annotation:groups")).content.decode()
    groups.give_role(group=group, project=project, role=Role.ANNOTATOR)
    page = reverse("annotation:group", args=[group.pk])
    assert "1 person is new" in client.post(page, {"people": "ann", "add": "1"}, follow=True).content.decode()
    assert Membership.objects.filter(project=project, user=ann).exists()
    place = group.members.get()
    client.post(reverse("annotation:remove_from_group", args=[group.pk, place.pk]))
    assert not Membership.objects.filter(project=project, user=ann).exists()
    client.post(reverse("annotation:rename_group", args=[group.pk]), {"name": "Early shift"})
    assert client.post(reverse("annotation:rename_group", args=[group.pk]), {"name": ""}).status_code == 422
    delete = reverse("annotation:delete_group", args=[group.pk])
    client.post(delete, {"typed": "Day shift"})
    assert PeopleGroup.objects.filter(pk=group.pk, name="Early shift").exists()
    client.post(delete, {"typed": "Early shift"})
    assert not PeopleGroup.objects.filter(pk=group.pk).exists()


def test_people_are_named_by_user_name_or_confirmed_address(root, group) -> None:
    confirmed, unconfirmed, given = make_user("confirmed"), make_user("unconfirmed"), make_user("given")
    EmailAddress.objects.create(user=confirmed, email="Ann@example.org", verified=True)
    EmailAddress.objects.create(user=unconfirmed, email="ben@example.org", verified=False)
    User.objects.filter(pk=unconfirmed.pk).update(email="ben@example.org")
    User.objects.filter(pk=given.pk).update(email="cat@example.org")
    client, page = browser(root), reverse("annotation:group", args=[group.pk])
    refused = client.post(page, {"people": "ann@example.org\nben@example.org nobody", "add": "1"})
    assert refused.status_code == 422
    assert "Nobody has an account under: ben@example.org, nobody." in refused.content.decode()
    assert in_group(group) == []
    client.post(page, {"people": "ann@example.org\nCAT@example.org, ann@example.org", "add": "1"})
    assert in_group(group) == ["confirmed", "given"]
    client.post(page, {"people": "given", "remove": "1"})
    assert in_group(group) == ["confirmed"]


def test_an_address_of_two_accounts_is_nobodys(root, group) -> None:
    for name in ("one", "two"):
        make_user(name, email="both@example.org")
    answer = browser(root).post(reverse("annotation:group", args=[group.pk]), {"people": "both@example.org"})
    assert answer.status_code == 422
    make_user("both@example.org")
    browser(root).post(reverse("annotation:group", args=[group.pk]), {"people": "both@example.org"})
    assert in_group(group) == ["both@example.org"]


def test_a_manager_gives_a_role_and_sees_where_each_comes_from(boss, project, root, group) -> None:
    ann = make_user("ann")
    groups.add_people(group=group, people=[ann], actor="root")
    client = browser(boss)
    answer = client.post(
        reverse("annotation:give_group_role", args=[project.slug]), {"group": group.pk, "role": "annotator"}
    )
    assert answer["Location"] == reverse("annotation:people", args=[project.slug])
    page = client.get(answer["Location"]).content.decode()
    assert "by the group Night shift" in page
    membership = Membership.objects.get(project=project, user=ann)
    remove = reverse("annotation:remove_member", args=[project.slug, membership.pk])
    # What a group gives is not taken here.
    assert remove not in page
    client.post(remove)
    assert Membership.objects.filter(pk=membership.pk).exists()
    client.post(reverse("annotation:people", args=[project.slug]), {"username": "ann", "role": "annotator"})
    assert "here, by the group Night shift" in tight(client.get(answer["Location"]).content.decode())
    given = group.roles.get()
    client.post(reverse("annotation:take_group_role", args=[project.slug, given.pk]))
    assert Membership.objects.get(pk=membership.pk).is_direct
    assert not group.roles.exists()


def test_a_role_nobody_knows_is_refused_with_the_page(boss, project, group) -> None:
    give = reverse("annotation:give_group_role", args=[project.slug])
    for sent in ({"group": group.pk, "role": "owner"}, {"group": 0, "role": "annotator"}, {}):
        assert browser(boss).post(give, sent).status_code == 422
    assert not group.roles.exists()


def test_a_manager_takes_no_role_of_another_project(boss, project, group) -> None:
    given = groups.give_role(group=group, project=make_project(), role=Role.ANNOTATOR)
    answer = browser(boss).post(reverse("annotation:take_group_role", args=[project.slug, given.pk]))
    assert answer.status_code == 404
    assert group.roles.exists()


def test_a_manager_by_a_group_alone_does_not_lock_themselves_out(project, group) -> None:
    deputy = make_user("deputy")
    given = groups.give_role(group=group, project=project, role=Role.MANAGER)
    groups.add_people(group=group, people=[deputy], actor="root")
    answer = browser(deputy).post(reverse("annotation:take_group_role", args=[project.slug, given.pk]))
    assert answer.status_code == 409
    assert group.roles.exists()


class TestInvitations:
    def test_a_link_lets_so_many_in_until_it_is_revoked(self, root, group, project) -> None:
        groups.give_role(group=group, project=project, role=Role.ENGINEER)
        page = reverse("annotation:group_invitations", args=[group.pk])
        answer = browser(root).post(page, {"maximum_uses": 2, "days": 3, "note": "the new ones"})
        link = answer.context["link"]
        ann, ben, cat = (make_user(name) for name in ("ann", "ben", "cat"))
        assert "invited to the group Night shift" in browser(ann).get(link).content.decode()
        assert in_group(group) == []
        for person in (ann, ann, ben):
            answer = browser(person).post(link, follow=True)
            assert project.name in answer.content.decode()
        assert in_group(group) == ["ann", "ben"]
        assert browser(cat).get(link).status_code == 410
        assert list(Membership.objects.filter(user=ann).values_list("role", flat=True)) == ["engineer"]

    def test_a_revoked_link_has_ended(self, root, group) -> None:
        invitation, secret = invitations.create_invitation(
            group=group, owner=root, maximum_uses=5, lifetime=timedelta(days=1)
        )
        other = groups.create_group(name="Other", owner=root)
        client = browser(root)
        assert "0 of 5" in client.get(reverse("annotation:group_invitations", args=[group.pk])).content.decode()
        wrong = reverse("annotation:revoke_group_invitation", args=[other.pk, invitation.pk])
        assert client.post(wrong).status_code == 404
        client.post(reverse("annotation:revoke_group_invitation", args=[group.pk, invitation.pk]))
        assert browser(make_user()).post(reverse("annotation:join", args=[secret])).status_code == 410
        assert in_group(group) == []

    def test_an_invitation_lets_a_stranger_open_an_account(self, root, group) -> None:
        _invitation, secret = invitations.create_invitation(
            group=group, owner=root, maximum_uses=1, lifetime=timedelta(days=1)
        )
        visitor = Client()
        assert "Open an account" in visitor.get(reverse("annotation:join", args=[secret])).content.decode()
        assert "Accounts of this site" not in visitor.get(reverse("account_signup")).content.decode()


def test_what_is_done_leaves_a_sentence_in_both_logs(root, boss, project, group) -> None:
    client, page = browser(root), reverse("annotation:group", args=[group.pk])
    browser(boss).post(
        reverse("annotation:give_group_role", args=[project.slug]), {"group": group.pk, "role": "annotator"}
    )
    make_user("ann")
    client.post(page, {"people": "ann", "add": "1"})
    assert "Put people into a group or took them out" in client.get(page).content.decode()
    assert list(project.actions.order_by("pk").values_list("actor", "route")) == [
        ("boss", "annotation:give_group_role"),
        ("root", "group:joined"),
    ]
    shown = browser(boss).get(reverse("annotation:log", args=[project.slug])).content.decode()
    assert f"People came in by a group (people 1, group {group.pk})" in shown


def test_joining_and_opening_a_project_stand_in_its_log(boss, project) -> None:
    _invitation, secret = invitations.create_invitation(
        project=project, role="annotator", owner=boss, maximum_uses=1, lifetime=timedelta(days=1)
    )
    browser(make_user("ann")).post(reverse("annotation:join", args=[secret]))
    line = Action.objects.get(route="annotation:join")
    assert (line.project, line.actor, line.target) == (project, "ann", {})


def test_the_administration_takes_and_gives_a_role_like_the_page(root, group, project) -> None:
    ann = make_user("ann")
    groups.give_role(group=group, project=project, role=Role.ANNOTATOR)
    groups.add_people(group=group, people=[ann], actor="root")
    client = browser(root)
    row = Membership.objects.get(project=project, user=ann)
    # A group gives it: taking it by hand leaves what the group gives.
    client.post(reverse("admin:annotation_membership_delete", args=[row.pk]), {"post": "yes"})
    assert Membership.objects.filter(pk=row.pk, is_direct=False).exists()
    assert (
        client.post(reverse("admin:annotation_membership_change", args=[row.pk]), {"role": "manager"}).status_code
        == 403
    )
    client.post(reverse("admin:annotation_membership_add"), {"project": project.pk, "user": ann.pk, "role": "engineer"})
    assert Membership.objects.get(project=project, user=ann, role="engineer").is_direct
    chosen = Membership.objects.get(project=project, user=ann, role="engineer")
    client.post(
        reverse("admin:annotation_membership_changelist"),
        {"action": "delete_selected", "_selected_action": [chosen.pk], "post": "yes"},
    )
    assert not Membership.objects.filter(pk=chosen.pk).exists()


def test_who_logs_in_from_the_link_is_in_the_group(root, group, project) -> None:
    groups.give_role(group=group, project=project, role=Role.ANNOTATOR)
    _invitation, secret = invitations.create_invitation(
        group=group, owner=root, maximum_uses=1, lifetime=timedelta(days=1)
    )
    User.objects.create_user("ann", password="a long enough password")
    link, visitor = reverse("annotation:join", args=[secret]), Client()
    visitor.get(link)
    answer = visitor.post(
        reverse("login") + f"?next={link}", {"login": "ann", "password": "a long enough password"}, follow=True
    )
    assert answer.redirect_chain[-1][0] == reverse("annotation:projects")
    assert project.name in answer.content.decode()
    assert in_group(group) == ["ann"]
