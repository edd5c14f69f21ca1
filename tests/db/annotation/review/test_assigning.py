"""Assigned questions: first for whom they were assigned to, for nobody else meanwhile, and never stuck."""

import pytest
from django.db import IntegrityError, transaction

from annotation.errors import InvalidConfiguration
from annotation.models import DatasetRole, Membership, Query, QueryState, Record, Role
from annotation.models.history import Action
from annotation.people.services import members
from annotation.questions.services import checks as gold
from annotation.questions.services import flags, labels, queue
from annotation.review import services
from annotation.review.services import change_chosen
from tests.factories import (
    asked_project,
    make_annotators,
    make_candidates,
    make_project,
    make_records,
    make_user,
    open_records,
    write_settings,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def asked(project):
    open_records(project, 4)
    return list(Query.objects.order_by("priority").values_list("pk", flat=True))


def assign(project, person, *ids):
    return services.assign_chosen(project=project, query_ids=ids, person_id=person and person.pk)


def shown(project, person):
    assignment = queue.claim_next(project=project, user=person)
    if assignment is None:
        return None
    labels.submit_label(assignment=assignment, choice=0)
    return assignment.query_id


def test_it_comes_first_and_the_order_goes_on(project, people, asked):
    assert assign(project, people[0], asked[2], asked[3]) == [asked[2], asked[3]]
    assert [shown(project, people[0]) for _ in range(5)] == [asked[2], asked[3], asked[0], asked[1], None]


def test_nobody_else_is_asked_meanwhile(project, people, asked):
    assign(project, people[0], asked[0], asked[1])
    assert [shown(project, people[1]) for _ in range(3)] == [asked[2], asked[3], None]
    assert queue.claim_next(project=project, user=people[0]).waiting == 1
    assert shown(project, people[0]) == asked[0]


def test_other_places_of_it_are_for_everybody(people):
    project, _, (ann, ben, cat) = asked_project(1, 3, overlap=2)
    query = Query.objects.get()
    assign(project, ann, query.pk)
    assert shown(project, ben) == query.pk
    assert shown(project, cat) is None
    assert shown(project, ann) == query.pk
    assert Query.objects.get().state == QueryState.CLOSED


def test_what_they_were_shown_and_did_not_answer_is_for_everybody(project, people, asked):
    assign(project, people[0], asked[0])
    held = queue.claim_next(project=project, user=people[0])
    assert held.query_id == asked[0]
    labels.skip_assignment(assignment=held, reason="unclear")
    assert shown(project, people[1]) == asked[0]


@pytest.mark.parametrize("way", ["leaves", "is paused", "was settled meanwhile"])
def test_whoever_answers_no_more_leaves_nothing_behind(project, people, asked, way):
    assign(project, people[0], asked[0])
    if way == "leaves":
        members.remove_member(project=project, user=people[0], role=Role.ANNOTATOR)
    elif way == "is paused":
        gold.pause_member(membership=Membership.objects.get(project=project, user=people[0]), reason="manager")
    else:
        assert assign(project, None, asked[0], asked[1]) == [asked[0]]
    assert shown(project, people[1]) == asked[0]


def test_what_they_had_or_what_is_not_asked_stays(project, people, asked):
    assert shown(project, people[0]) == asked[0]
    held = queue.claim_next(project=project, user=people[0])
    labels.skip_assignment(assignment=held, reason="unclear")
    flags.set_aside_chosen(project=project, query_ids=[asked[2]])
    assert assign(project, people[0], *asked) == [asked[3]]
    assert assign(project, people[0], *asked) == []
    assert assign(project, people[1], *asked) == [asked[1], asked[3]]
    other = make_project()
    assert assign(other, make_annotators(other, 1)[0], *asked) == []


def test_only_annotators_who_may_answer(project, people, asked):
    gold.pause_member(membership=Membership.objects.get(project=project, user=people[1]), reason="manager")
    for person in (make_user(), people[1]):
        with pytest.raises(InvalidConfiguration, match="Assign to an annotator"):
            assign(project, person, asked[0])


def test_where_it_would_touch_what_is_protected_it_is_refused(project, people, asked):
    crowd = make_project(oracle="crowd")
    with pytest.raises(InvalidConfiguration, match="crowd"):
        assign(crowd, make_annotators(crowd, 1)[0], 1)
    write_settings(project, selection="secret_sample", selection_rate=0.5)
    project.refresh_from_db()
    with pytest.raises(InvalidConfiguration, match="secret"):
        assign(project, people[0], asked[0])


def test_the_database_assigns_no_gate_output():
    crowd = make_project(oracle="crowd")
    (one,) = make_candidates(crowd, ["play jazz"])
    queue.open_queries(project=crowd, round_number=1, query_ids=[one.pk])
    with pytest.raises(IntegrityError, match="annotation_query_assigned"), transaction.atomic():
        Query.objects.filter(pk=one.pk).update(assigned_to=make_user())


def test_a_hidden_check_does_not_come_alone(project, people, asked):
    """Where all that is left waits for somebody else, a check would be known for what it is."""
    assign(project, people[0], *asked)
    write_settings(project, gold_share=1.0)
    project.refresh_from_db()
    records = make_records(project, ["a public one"], role=DatasetRole.PUBLIC_TEST)
    Record.objects.filter(dataset=records[0].dataset).update(label=0)
    gold.add_public_checks(project=project, dataset=records[0].dataset, owner=project.created_by, most=1)
    assert queue.claim_next(project=project, user=people[1]) is None
    assert queue.claim_next(project=project, user=people[0]).query.state == "gold"


def test_each_question_that_changed_has_a_line():
    project, _, (ann,) = asked_project(2)
    ids = sorted(Query.objects.values_list("pk", flat=True))

    def change(action, **wanted):
        done = change_chosen(project=project, query_ids=ids, action=action, actor="mia", **wanted)
        lines = Action.objects.filter(project=project, route=f"question:{action}", actor="mia")
        assert sorted(line.target["query_id"] for line in lines) == done
        return done

    assert change("assign", person=ann.pk) == ids
    assert change("unassign") == ids
    assert change("set_aside") == ids
    assert change("send_back", comment="sure?") == []
    with pytest.raises(InvalidConfiguration, match="Assign to an annotator"):
        change("assign")
