"""Managers and annotators write to each other: who may, to whom, unread until read, and gone with the record."""

import threading
from contextlib import contextmanager

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now

from annotation.choices.secrecy import hides_selection
from annotation.data.services import forgetting
from annotation.errors import InvalidConfiguration, ProjectClosed
from annotation.models import Assignment, Consensus, Project, Query, QueryState, Record, Report, ReportKind
from annotation.questions.selectors.flags import about_other_questions, own_threads, own_words, threads_of, unread_by
from annotation.questions.services import correcting, flags, labels, queue
from annotation.questions.services.labels import mark_labels_used
from tests.factories import (
    make_annotators,
    make_candidates,
    make_manager,
    make_project,
    make_records,
    make_user,
    open_records,
    write_settings,
)
from tests.owning import as_owner

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def refused(rule):
    """The statement inside is refused under this name, and an open transaction goes on."""
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        yield
    assert caught.value.__cause__.diag.constraint_name == rule


def answered(project, person, choice=0):
    held = queue.claim_next(project=project, user=person)
    labels.submit_label(assignment=held, choice=choice)
    return Assignment.objects.get(pk=held.pk)


@pytest.fixture
def project():
    project = make_project(overlap=2)
    open_records(project, 3)
    return project


@pytest.fixture
def people(project):
    return make_annotators(project, 2)


@pytest.fixture
def manager(project):
    return make_manager(project)


def reply(project, turn, person, author, text="why music?"):
    return flags.reply(project=project, query_id=turn.query_id, person_id=person.pk, text=text, author=author)


def unread(project, person):
    return list(unread_by(project, person.pk).values_list("comment", flat=True))


def test_both_ways_in_order_and_unread_until_read(project, people, manager):
    turn = answered(project, people[0])
    flags.write_back(assignment=turn, text="  is a piano music?\n ")
    (thread,) = threads_of(project, turn.query_id)
    assert (thread.person_id, thread.is_unread, thread.may_write) == (people[0].pk, True, True)
    reply(project, turn, people[0], manager, "it is")
    (thread,) = threads_of(project, turn.query_id)
    assert [(one.text, one.author, one.from_manager) for one in thread.said] == [
        ("is a piano music?", "", False),
        ("it is", "manager", True),
    ]
    # Who writes has read.
    assert not thread.is_unread
    assert unread(project, people[0]) == ["it is"]
    flags.write_back(assignment=turn, text="thanks")
    assert unread(project, people[0]) == []
    (thread,) = threads_of(project, turn.query_id)
    assert [one.text for one in thread.said] == ["is a piano music?", "it is", "thanks"]
    assert flags.mark_heard(project=project, query_id=turn.query_id, person_id=people[0].pk, reader=manager) == 1
    assert not threads_of(project, turn.query_id)[0].is_unread


def test_the_same_words_wait_once_and_may_be_said_again_later(project, people, manager):
    turn = answered(project, people[0])
    first = reply(project, turn, people[0], manager)
    assert reply(project, turn, people[0], manager) == first
    flags.mark_read(assignment=turn)
    assert reply(project, turn, people[0], manager) != first


def test_nobody_reads_what_others_say(project, people, manager):
    turns = [answered(project, person) for person in people]
    assert turns[0].query_id == turns[1].query_id
    flags.write_back(assignment=turns[0], text="the first says")
    reply(project, turns[1], people[1], manager, "to the second")
    told = [
        [one.text for one in own_threads(project, person.pk, [turns[0].query_id])[turns[0].query_id]]
        for person in people
    ]
    assert told == [["the first says"], ["to the second"]]
    assert [said.text for _turn, said in own_words(project, people[1].pk, unread=False)] == ["to the second"]
    # The second's reply is none of the first's comments read.
    assert threads_of(project, turns[0].query_id)[0].is_unread


def test_managers_write_to_those_alone_who_were_asked(project, people, manager):
    turn = answered(project, people[0])
    with pytest.raises(InvalidConfiguration, match="Nobody of this name"):
        reply(project, turn, people[1], manager)
    with refused("annotation_report_to_who_was_asked"):
        Report.objects.create(
            project=project, query=turn.query, annotator=people[1], kind="reply", comment="x", author=manager
        )
    project.memberships.filter(user=people[0]).delete()
    with pytest.raises(InvalidConfiguration, match="Nobody of this name"):
        reply(project, turn, people[0], manager)


def test_a_crowd_is_told_nothing_and_may_speak(manager):
    project = make_project(oracle="crowd")
    candidates = make_candidates(project, ["play jazz"])
    queue.open_queries(project=project, round_number=1, query_ids=[candidates[0].pk])
    (person,) = make_annotators(project, 1)
    turn = answered(project, person)
    flags.write_back(assignment=turn, text="what is jazz?")
    (thread,) = threads_of(project, turn.query_id)
    assert (thread.is_unread, thread.may_write) == (True, False)
    with pytest.raises(InvalidConfiguration, match="In front of a crowd"):
        reply(project, turn, person, manager)
    for kind, author in (("reply", manager), ("returned", None)):
        with refused("annotation_report_no_word_to_a_crowd"):
            Report.objects.create(
                project=project, query=turn.query, annotator=person, kind=kind, comment="x", author=author
            )


def test_where_answers_are_randomised_managers_write_to_nobody(monkeypatch, project, people, manager):
    turn = answered(project, people[0])
    monkeypatch.setattr(Project, "settings", {"label_randomizer": "randomized_answers"})
    with pytest.raises(InvalidConfiguration, match="randomised"):
        reply(project, turn, people[0], manager)


def test_where_questions_are_secret_those_who_were_asked_read_it(project, people, manager):
    write_settings(project, selection="secret_sample")
    project = Project.objects.get(pk=project.pk)
    assert hides_selection(project.settings)
    turn = answered(project, people[0])
    reply(project, turn, people[0], manager)
    assert unread(project, people[0]) == ["why music?"]
    assert unread(project, people[1]) == []


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (" \n", "Write something"),
        ("x" * 1001, "1,000 characters"),
        ("a\x00b", "plain text"),
        ("\x1b[31m", "plain text"),
    ],
)
def test_words_are_plain_and_bounded(project, people, manager, text, rule):
    turn = answered(project, people[0])
    with pytest.raises(InvalidConfiguration, match=rule):
        flags.write_back(assignment=turn, text=text)
    with pytest.raises(InvalidConfiguration, match=rule):
        reply(project, turn, people[0], manager, text)
    assert not Report.objects.exists()
    flags.write_back(assignment=turn, text="two\nlines\tand <b>marks</b>" + "x" * 900)


def test_an_archived_project_is_only_read(project, people, manager):
    turn = answered(project, people[0])
    Project.objects.filter(pk=project.pk).update(state="archived")
    turn = Assignment.objects.get(pk=turn.pk)
    with pytest.raises(ProjectClosed):
        flags.write_back(assignment=turn, text="still there?")
    with pytest.raises(ProjectClosed):
        reply(Project.objects.get(pk=project.pk), turn, people[0], manager)


def test_an_answer_that_came_back_waits_until_it_may_change_no_more(project, people):
    turns = [answered(project, person) for person in people]
    correcting.send_back(project=project, query_ids=[turns[0].query_id], comment="is it?")
    flags.mark_read(assignment=turns[0])
    assert unread(project, people[0]) == ["is it?"]
    mark_labels_used(project=project, last_consensus_id=Consensus.objects.latest("pk").pk)
    flags.mark_read(assignment=Assignment.objects.get(pk=turns[0].pk))
    assert unread(project, people[0]) == []
    assert unread(project, people[1]) == ["is it?"]


def test_flags_wait_for_a_decision_whoever_reads_them(project, people, manager):
    held = queue.claim_next(project=project, user=people[0])
    flags.flag_question(assignment=held, kind=ReportKind.BROKEN, comment="half of it is missing")
    reply(project, held, people[0], manager, "thank you")
    assert Report.objects.get(kind="broken").resolved_at is None
    (thread,) = threads_of(project, held.query_id)
    assert [one.kind for one in thread.said] == ["broken", "reply"]


def test_what_stands_beside_no_answer_is_found_unread_first(project, people, manager):
    held = queue.claim_next(project=project, user=people[0])
    flags.flag_question(assignment=held, kind=ReportKind.BROKEN)
    turn = answered(project, people[0])
    reply(project, held, people[0], manager, "about the broken one")
    reply(project, turn, people[0], manager, "about the answer")
    assert about_other_questions(project, people[0].pk, unread=False) == [held.query_id]
    Query.objects.filter(pk=turn.query_id).update(state=QueryState.SET_ASIDE)
    flags.mark_read(assignment=turn)
    assert about_other_questions(project, people[0].pk, unread=False) == [held.query_id, turn.query_id]
    assert about_other_questions(project, people[0].pk, unread=True) == [held.query_id]


class TestWords:
    """What was said stays as it was said."""

    @pytest.fixture
    def said(self, project, people, manager):
        return reply(project, answered(project, people[0]), people[0], manager)

    @pytest.mark.parametrize("change", [{"comment": "another"}, {"kind": "comment", "author": None}])
    def test_never_change(self, said, change):
        # The site's own role may not even try.
        with pytest.raises(Exception, match="permission denied"), transaction.atomic():
            Report.objects.filter(pk=said.pk).update(**change)
        with as_owner(), refused("annotation_report_words_stay"):
            Report.objects.filter(pk=said.pk).update(**change)

    def test_are_settled_once(self, said, manager, people):
        Report.objects.filter(pk=said.pk).update(resolved_at=Now(), resolved_by=manager)
        with refused("annotation_report_words_stay"):
            Report.objects.filter(pk=said.pk).update(resolved_at=None, resolved_by=None)

    def test_a_reply_is_by_somebody_and_says_something(self, said, manager):
        same = {"project": said.project, "query": said.query, "annotator": said.annotator}
        for fields in (
            {"kind": "reply", "comment": "x"},
            {"kind": "comment", "comment": "x", "author": manager},
        ):
            with refused("annotation_report_reply_by_somebody"):
                Report.objects.create(**same, **fields)
        with refused("annotation_report_comment_says_something"):
            Report.objects.create(**same, kind="reply", comment="", author=manager)

    def test_belong_to_the_projects_own_question(self, said):
        with refused("annotation_report_own_project"):
            Report.objects.create(
                project=make_project(), query=said.query, annotator=said.annotator, kind="comment", comment="x"
            )


def forget_one(project, turns):
    with transaction.atomic():
        forgetting.empty_records(Record.objects.filter(pk=turns[0].query.record_id), project=project)
    assert Query.objects.get(pk=turns[0].query_id).emptied
    return turns[0]


class TestForgetting:
    @pytest.fixture
    def asked(self):
        """Two people's records, each answered and talked about."""
        project = make_project(overlap=1)
        records = make_records(project, ["my name is Ada", "the weather"])
        queue.open_queries(project=project, round_number=1, record_ids=[record.pk for record in records])
        (person,) = make_annotators(project, 1)
        manager = make_user("manager")
        turns = [answered(project, person) for _record in records]
        for turn in turns:
            flags.write_back(assignment=turn, text="she says Ada")
            reply(project, turn, person, manager, "never mind Ada")
        return project, turns, person, manager

    def test_words_go_with_the_record_they_are_about(self, asked):
        project, turns, person, _manager = asked
        gone = forget_one(project, turns)
        (kept,) = [turn for turn in turns if turn != gone]
        assert set(Report.objects.values_list("query", flat=True)) == {kept.query_id}
        assert threads_of(project, gone.query_id)[0].said == ()
        assert [turn for turn, _said in own_words(project, person.pk, unread=False)] == [kept.pk] * 2

    def test_nothing_is_said_afterwards(self, asked):
        project, turns, person, manager = asked
        gone = forget_one(project, turns)
        for write in (
            lambda: flags.write_back(assignment=gone, text="Ada, was it?"),
            lambda: reply(project, gone, person, manager, "Ada, was it?"),
        ):
            with pytest.raises(InvalidConfiguration, match="asked no more"):
                write()
        with refused("annotation_report_not_forgotten"):
            flags.comment_on(assignment=gone, comment="Ada, was it?")

    def test_words_that_come_while_it_is_forgotten_wait_and_are_refused(self, asked):
        project, turns, _person, _manager = asked
        emptied, outcome = threading.Event(), []

        def write():
            emptied.wait(120)
            try:
                flags.comment_on(assignment=turns[0], comment="a late word")
            except IntegrityError as error:
                outcome.append(error.__cause__.diag.constraint_name)
            finally:
                connection.close()

        writer = threading.Thread(target=write)
        writer.start()
        with transaction.atomic():
            forgetting.empty_records(Record.objects.filter(pk=turns[0].query.record_id), project=project)
            emptied.set()
            writer.join(1)
            assert writer.is_alive(), outcome
        writer.join(120)
        assert outcome == ["annotation_report_not_forgotten"]
        assert not Report.objects.filter(query=turns[0].query_id).exists()
