import threading

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now

from annotation.choices.rules import hides_selection
from annotation.data.services import forgetting
from annotation.errors import InvalidConfiguration, ProjectClosed
from annotation.models import Assignment, Consensus, Project, Query, QueryState, Record, Report, ReportKind
from annotation.questions.selectors import about_other_questions, own_flags, own_words, reports_of, unread_by
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
from tests.refusing import refused

pytestmark = pytest.mark.django_db(transaction=True)


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
def manager(project):
    return make_manager(project)


def commented(project, person, text="is a piano music?"):
    turn = answered(project, person)
    return turn, flags.comment_on(assignment=turn, comment=text)


def reply(report, author, text="it is"):
    flags.reply(project=report.project, report_id=report.pk, text=text, author=author)


def unread(project, person):
    return [one.reply or one.comment for one in unread_by(project, person.pk)]


def test_a_comment_is_answered_once_and_the_reply_unread_until_read(project, people, manager):
    turn, comment = commented(project, people[0], "  is a piano music?\n ")
    assert comment.comment == "is a piano music?"
    reply(comment, manager)
    assert list(reports_of(project, turn.query_id).values_list("comment", "reply", "resolved_by", "read_at")) == [
        ("is a piano music?", "it is", manager.pk, None)
    ]
    with pytest.raises(InvalidConfiguration, match="settled already"):
        reply(comment, manager, "no")
    assert unread(project, people[0]) == ["it is"]
    # Who writes has read.
    flags.comment_on(assignment=turn, comment="thanks")
    assert unread(project, people[0]) == []


def test_nobody_reads_what_others_say(project, people, manager):
    turns = [commented(project, person, f"says {place}") for place, person in enumerate(people)]
    assert turns[0][0].query_id == turns[1][0].query_id
    reply(turns[1][1], manager, "to the second")
    told = [
        [one.comment for one in own_flags(project, person.pk, [turns[0][0].query_id])[turns[0][0].query_id]]
        for person in people
    ]
    assert told == [["says 0"], ["says 1"]]
    assert [said.reply for _turn, said in own_words(project, people[0].pk, unread=False)] == [""]
    assert [said.reply for _turn, said in own_words(project, people[1].pk, unread=True)] == ["to the second"]
    flags.mark_read(assignment=turns[0][0])
    assert unread(project, people[1]) == ["to the second"]


def test_managers_write_to_those_alone_who_were_asked(project, people):
    turn = answered(project, people[0])
    with refused("annotation_report_to_who_was_asked"):
        Report.objects.create(project=project, query=turn.query, annotator=people[1], kind="returned", comment="x")


def test_a_crowd_is_told_nothing_and_may_speak(manager):
    project = make_project(oracle="crowd")
    candidates = make_candidates(project, ["play jazz"])
    queue.open_queries(project=project, round_number=1, query_ids=[candidates[0].pk])
    (person,) = make_annotators(project, 1)
    turn, comment = commented(project, person, "what is jazz?")
    with pytest.raises(InvalidConfiguration, match="Not for crowds"):
        reply(comment, manager)
    with refused("annotation_report_no_word_to_a_crowd"):
        Report.objects.filter(pk=comment.pk).update(reply="x", resolved_at=Now(), resolved_by=manager)
    with refused("annotation_report_no_word_to_a_crowd"):
        Report.objects.create(project=project, query=turn.query, annotator=person, kind="returned", comment="x")


def test_where_answers_are_randomised_managers_write_to_nobody(monkeypatch, project, people, manager):
    _turn, comment = commented(project, people[0])
    monkeypatch.setattr(Project, "settings", {"label_randomizer": "randomized_answers"})
    with pytest.raises(InvalidConfiguration, match="Randomised answers"):
        reply(comment, manager)


def test_where_questions_are_secret_those_who_were_asked_read_it(project, people, manager):
    write_settings(project, selection="secret_sample")
    project = Project.objects.get(pk=project.pk)
    assert hides_selection(project.settings)
    _turn, comment = commented(project, people[0])
    reply(comment, manager)
    assert unread(project, people[0]) == ["it is"]
    assert unread(project, people[1]) == []


def test_an_archived_project_is_only_read(project, people, manager):
    turn, comment = commented(project, people[0])
    Project.objects.filter(pk=project.pk).update(state="archived")
    turn, comment = Assignment.objects.get(pk=turn.pk), Report.objects.get(pk=comment.pk)
    with pytest.raises(ProjectClosed):
        flags.comment_on(assignment=turn, comment="still there?")
    with pytest.raises(ProjectClosed):
        reply(comment, manager)


def test_an_answer_that_came_back_waits_until_it_may_change_no_more(project, people):
    turns = [answered(project, person) for person in people]
    correcting.send_back(project=project, query_ids=[turns[0].query_id], comment="is it?")
    flags.mark_read(assignment=turns[0])
    assert unread(project, people[0]) == ["is it?"]
    mark_labels_used(project=project, last_consensus_id=Consensus.objects.latest("pk").pk)
    flags.mark_read(assignment=Assignment.objects.get(pk=turns[0].pk))
    assert unread(project, people[0]) == []
    assert unread(project, people[1]) == ["is it?"]


def test_what_stands_beside_no_answer_is_found(project, people, manager):
    held = queue.claim_next(project=project, user=people[0])
    reply(flags.flag_question(assignment=held, kind=ReportKind.BROKEN), manager, "about the broken one")
    turn, comment = commented(project, people[0])
    reply(comment, manager, "about the answer")
    assert about_other_questions(project, people[0].pk, unread=False) == [held.query_id]
    Query.objects.filter(pk=turn.query_id).update(state=QueryState.SET_ASIDE)
    flags.mark_read(assignment=turn)
    assert about_other_questions(project, people[0].pk, unread=False) == [turn.query_id, held.query_id]
    assert about_other_questions(project, people[0].pk, unread=True) == [held.query_id]


class TestWords:
    @pytest.fixture
    def said(self, project, people):
        return commented(project, people[0])[1]

    @pytest.mark.parametrize("change", [{"comment": "another"}, {"kind": "broken"}])
    def test_never_change(self, said, change):
        # The site's own role may not even try.
        with pytest.raises(Exception, match="permission denied"), transaction.atomic():
            Report.objects.filter(pk=said.pk).update(**change)
        with as_owner(), refused("annotation_report_words_stay"):
            Report.objects.filter(pk=said.pk).update(**change)

    def test_are_settled_and_read_once(self, said, manager):
        reply(said, manager)
        for change in ({"resolved_at": None, "resolved_by": None, "reply": ""}, {"reply": "it is not"}):
            with refused("annotation_report_words_stay"):
                Report.objects.filter(pk=said.pk).update(**change)
        Report.objects.filter(pk=said.pk).update(read_at=Now())
        with refused("annotation_report_words_stay"):
            Report.objects.filter(pk=said.pk).update(read_at=None)

    def test_a_reply_settles_and_a_comment_says_something(self, said):
        with refused("annotation_report_reply_settles"):
            Report.objects.filter(pk=said.pk).update(reply="it is")
        with refused("annotation_report_comment_says_something"):
            Report.objects.create(project=said.project, query=said.query, annotator=said.annotator, kind="returned")

    def test_belong_to_the_projects_own_question(self, said):
        with refused("annotation_report_own_project"):
            Report.objects.create(
                project=make_project(), query=said.query, annotator=said.annotator, kind="broken", comment="x"
            )


def forget_one(project, turns):
    with transaction.atomic():
        forgetting.empty_records(Record.objects.filter(pk=turns[0].query.record_id), project=project)
    assert Query.objects.get(pk=turns[0].query_id).emptied
    return turns[0]


class TestForgetting:
    @pytest.fixture
    def asked(self):
        project = make_project(overlap=1)
        records = make_records(project, ["my name is Ada", "the weather"])
        queue.open_queries(project=project, round_number=1, record_ids=[record.pk for record in records])
        (person,) = make_annotators(project, 1)
        manager = make_user("manager")
        turns = [answered(project, person) for _record in records]
        for turn in turns:
            reply(flags.comment_on(assignment=turn, comment="she says Ada"), manager, "never mind Ada")
        return project, turns, person, manager

    def test_words_go_with_the_record_they_are_about(self, asked):
        project, turns, person, _manager = asked
        gone = forget_one(project, turns)
        (kept,) = [turn for turn in turns if turn != gone]
        assert set(Report.objects.values_list("query", flat=True)) == {kept.query_id}
        assert [turn for turn, _said in own_words(project, person.pk, unread=False)] == [kept.pk]

    def test_nothing_is_said_afterwards(self, asked):
        project, turns, _person, _manager = asked
        gone = forget_one(project, turns)
        with pytest.raises(InvalidConfiguration, match="settled meanwhile"):
            flags.comment_on(assignment=gone, comment="Ada, was it?")
        with refused("annotation_report_not_forgotten"):
            Report.objects.create(
                project=project, query_id=gone.query_id, annotator=gone.annotator, kind="comment", comment="Ada"
            )

    def test_words_that_come_while_it_is_forgotten_wait_and_are_refused(self, asked):
        project, turns, _person, _manager = asked
        emptied, outcome = threading.Event(), []

        def write():
            emptied.wait(120)
            try:
                Report.objects.create(
                    project=project,
                    query_id=turns[0].query_id,
                    annotator=turns[0].annotator,
                    kind="comment",
                    comment="a late word",
                )
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
