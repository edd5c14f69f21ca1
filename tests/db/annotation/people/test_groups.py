import threading

import psycopg
import pytest
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, connection, transaction

from annotation.errors import GroupRefused
from annotation.models import Assignment, AssignmentState, Label, Membership, Query, Role
from annotation.models.history import Action
from annotation.models.people import GroupRole
from annotation.people.services import crowd_links, members
from annotation.questions.services import labels, queue
from annotation.work.services.history import acting
from tests.factories import add_members, make_project, make_user, open_records
from tests.owning import as_owner
from tests.threads import wait_until_blocked

pytestmark = pytest.mark.django_db
PLACES = User.groups.through.objects


@pytest.fixture
def group() -> Group:
    return Group.objects.create(name="Night shift")


def roles(project, user):
    found = Membership.objects.filter(project=project, user=user).order_by("role")
    return list(found.values_list("role", "is_direct"))


def add(group, *people):
    with acting("root"):
        group.user_set.add(*people)


def remove(group, *people):
    with acting("root"):
        group.user_set.remove(*people)


def give(group, project, role=Role.ANNOTATOR):
    return members.give_role(group=group, project=project, role=role)


def settle():
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")


class Refused:
    def __init__(self, rule):
        self.rule = rule

    def __enter__(self):
        self.atomic = transaction.atomic()
        self.atomic.__enter__()

    def __exit__(self, kind, error, trace):
        if error is None:
            try:
                settle()
            except IntegrityError as late:
                kind, error = type(late), late
        self.atomic.__exit__(kind, error, trace)
        assert isinstance(error, IntegrityError), f"{self.rule} let it pass"
        assert isinstance(error.__cause__, psycopg.IntegrityError)
        assert error.__cause__.diag.constraint_name == self.rule
        return True


class TestWhatAGroupGives:
    def test_people_and_roles_come_in_any_order(self, group) -> None:
        first, second = make_project(), make_project()
        ann, ben = make_user(), make_user()
        give(group, first)
        add(group, ann, ben)
        add(group, ann)
        give(group, second, Role.ENGINEER)
        give(group, second, Role.ENGINEER)
        for person in (ann, ben):
            assert roles(first, person) == [("annotator", False)]
            assert roles(second, person) == [("engineer", False)]
        settle()

    def test_who_leaves_is_out_and_what_they_held_goes_back(self, group) -> None:
        project = make_project()
        answered, held = open_records(project, 2)
        ann = make_user()
        give(group, project)
        add(group, ann)
        labels.submit_label(assignment=queue.claim_next(project=project, user=ann), choice=0)
        lease = queue.claim_next(project=project, user=ann)
        assert lease.query_id == held.pk
        remove(group, ann)
        assert roles(project, ann) == []
        lease.refresh_from_db()
        held.refresh_from_db()
        assert (lease.state, held.open_slots) == (AssignmentState.EXPIRED, 1)
        assert Label.objects.get(query=answered).annotator == ann
        assert queue.queue_state(project=project, user=ann) == "not_member"
        settle()

    def test_two_leases_of_one_question_both_go_back(self, group) -> None:
        project = make_project(overlap=2)
        (query,) = open_records(project, 1)
        people = [make_user(), make_user()]
        given = give(group, project)
        add(group, *people)
        assert {queue.claim_next(project=project, user=person).query_id for person in people} == {query.pk}
        members.take_role(given=given)
        query.refresh_from_db()
        assert query.open_slots == 2
        assert not Assignment.objects.filter(state=AssignmentState.LEASED).exists()
        settle()

    def test_a_role_from_two_places_ends_with_the_last(self, group) -> None:
        project, ann = make_project(), make_user()
        other = Group.objects.create(name="Day shift")
        members.add_member(project=project, user=ann, role=Role.ANNOTATOR)
        Membership.objects.filter(user=ann).update(guidelines_seen=3)
        for each in (group, other):
            give(each, project)
            add(each, ann)
        assert roles(project, ann) == [("annotator", True)]
        members.remove_member(project=project, user=ann, role=Role.ANNOTATOR)
        assert roles(project, ann) == [("annotator", False)]
        assert Membership.objects.get(user=ann).guidelines_seen == 3
        remove(group, ann)
        assert roles(project, ann) == [("annotator", False)]
        other.delete()
        assert roles(project, ann) == []
        settle()

    def test_who_has_the_role_by_themselves_keeps_it(self, group) -> None:
        project, ann = make_project(), make_user()
        given = give(group, project)
        add(group, ann)
        members.add_member(project=project, user=ann, role=Role.ANNOTATOR)
        members.take_role(given=given)
        assert roles(project, ann) == [("annotator", True)]
        settle()

    def test_the_log_of_each_project_says_who_came_and_went(self, group) -> None:
        project, elsewhere = make_project(), make_project()
        give(group, project)
        add(group, make_user(), make_user())
        add(group)
        remove(group, *group.user_set.all())
        assert list(Action.objects.order_by("pk").values_list("project", "actor", "route", "target")) == [
            (project.pk, "root", members.JOINED, {"group_id": group.pk, "people": 2}),
            (project.pk, "root", members.LEFT, {"group_id": group.pk, "people": 2}),
        ]
        assert not elsewhere.actions.exists()

    def test_no_stranger_joins(self, group) -> None:
        crowd = make_project(oracle="crowd")
        link = crowd.crowd_links.create(
            digest="t",
            platform="prolific",
            answers_wanted=1,
            completion_code="C",
            maximum_participants=1,
            expires_at="2100-01-01T00:00Z",
            created_by=crowd.created_by,
        )
        participant = crowd_links.join(link=link, pid="somebody")
        with pytest.raises(GroupRefused), transaction.atomic():
            add(group, participant.user)
        with Refused("annotation_groupmember_no_stranger"):
            PLACES.create(group=group, user=participant.user)

    def test_the_last_way_in_of_a_manager_is_not_taken_by_themselves(self, group) -> None:
        project, boss = make_project(), make_user()
        given = give(group, project, Role.MANAGER)
        members.refuse_own_way_out(given=given, user=boss)
        add(group, boss)
        with pytest.raises(GroupRefused):
            members.refuse_own_way_out(given=given, user=boss)
        add_members(project, boss, role=Role.ENGINEER)
        with pytest.raises(GroupRefused):
            members.refuse_own_way_out(given=given, user=boss)
        members.add_member(project=project, user=boss, role=Role.MANAGER)
        members.refuse_own_way_out(given=given, user=boss)


def test_a_person_taken_out_by_hand_gives_back_what_they_hold() -> None:
    project, ann = make_project(), make_user()
    add_members(project, ann)
    (query,) = open_records(project, 1)
    queue.claim_next(project=project, user=ann)
    members.remove_member(project=project, user=ann, role=Role.ANNOTATOR)
    assert Query.objects.get(pk=query.pk).open_slots == 1
    members.remove_member(project=project, user=ann, role=Role.ANNOTATOR)


class TestWhatTheDatabaseRefuses:
    @pytest.fixture
    def placed(self, group):
        project, ann = make_project(), make_user()
        give(group, project)
        add(group, ann)
        settle()
        return Membership.objects.get(project=project, user=ann)

    def test_a_membership_nobody_gave(self, placed) -> None:
        with Refused("annotation_membership_has_source"):
            Membership.objects.create(project=placed.project, user=make_user(), role="annotator", is_direct=False)
        with Refused("annotation_membership_has_source"):
            Membership.objects.filter(pk=placed.pk).update(role="manager")

    def test_a_group_role_without_its_membership(self, placed) -> None:
        with Refused("annotation_membership_has_source"):
            placed.delete()

    def test_a_place_without_its_memberships(self, group, placed) -> None:
        with Refused("annotation_groupmember_has_roles"):
            PLACES.create(group=group, user=make_user())
        with Refused("annotation_groupmember_has_roles"):
            PLACES.filter(group=group).delete()

    def test_a_role_without_its_memberships(self, group, placed) -> None:
        with Refused("annotation_grouprole_has_members"):
            GroupRole.objects.create(group=group, project=make_project(), role="engineer")
        with Refused("annotation_grouprole_has_members"):
            group.roles.all().delete()

    def test_a_deleted_group_that_leaves_its_roles_behind(self, group, placed) -> None:
        with Refused("annotation_groupmember_has_roles"), connection.cursor() as cursor:
            cursor.execute("DELETE FROM auth_user_groups WHERE group_id = %s", [group.pk])
            cursor.execute("DELETE FROM annotation_grouprole WHERE group_id = %s", [group.pk])
            cursor.execute("DELETE FROM auth_group WHERE id = %s", [group.pk])

    def test_places_and_roles_are_never_changed(self, group, placed) -> None:
        # The site may not even try.
        with as_owner(), Refused("annotation_groupmember_kept"):
            PLACES.filter(group=group).update(user=make_user())
        with as_owner(), Refused("annotation_grouprole_kept"):
            group.roles.update(role="manager")

    def test_doubles_and_shapes(self, group, placed) -> None:
        with Refused("annotation_grouprole_once"):
            GroupRole.objects.create(group=group, project=placed.project, role="annotator")
        with Refused("annotation_grouprole_known"):
            GroupRole.objects.create(group=group, project=placed.project, role="owner")

    def test_deleting_a_person_leaves_nothing_behind(self, group, placed) -> None:
        placed.user.delete()
        settle()
        assert not group.user_set.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("joins_first", [True, False])
def test_a_role_given_while_somebody_joins_reaches_them(joins_first: bool) -> None:
    """Two sessions at once: the second one waits for the group and sees what the first one did."""
    group = Group.objects.create(name="Both")
    project, ann = make_project(), make_user()
    steps = [lambda: add(group, ann), lambda: give(group, project)]
    if not joins_first:
        steps.reverse()
    failures = []

    def second() -> None:
        try:
            steps[1]()
        except Exception as error:  # noqa: BLE001 - shown by the assertion below
            failures.append(error)
        finally:
            connection.close()

    other = threading.Thread(target=second)
    with transaction.atomic():
        steps[0]()
        other.start()
        wait_until_blocked()
    other.join(timeout=120)
    assert (failures, other.is_alive()) == ([], False)
    assert roles(project, ann) == [("annotator", False)]


@pytest.mark.django_db(transaction=True)
def test_two_groups_left_at_once_leave_nothing() -> None:
    project, ann = make_project(), make_user()
    both = [Group.objects.create(name=name) for name in ("One", "Two")]
    for each in both:
        give(each, project)
        add(each, ann)
    failures = []

    def second() -> None:
        try:
            remove(both[1], ann)
        except Exception as error:  # noqa: BLE001 - shown by the assertion below
            failures.append(error)
        finally:
            connection.close()

    other = threading.Thread(target=second)
    with transaction.atomic():
        remove(both[0], ann)
        other.start()
        wait_until_blocked()
    other.join(timeout=120)
    assert (failures, other.is_alive()) == ([], False)
    assert roles(project, ann) == []
