import pytest

from annotation.errors import InvalidConfiguration, UndoRefused
from annotation.models import Assignment, Consensus, Label, Project, Query, QueryState, Report, ReportKind
from annotation.models.quality import GoldQuery
from annotation.questions.services import correcting, flags, labels, queue
from annotation.questions.services.labels import mark_labels_used
from annotation.review import services
from tests.factories import asked_project, make_annotators, make_candidates, make_project, open_records

pytestmark = pytest.mark.django_db(transaction=True)


def answer(project, person, choice):
    held = queue.claim_next(project=project, user=person)
    labels.submit_label(assignment=held, choice=choice)
    return held.query_id


def correct(project, person, query_id, choice):
    return correcting.correct_answer(project=project, user=person, query_id=query_id, choice=choice)


@pytest.mark.parametrize("overlap", [1, 3])
def test_what_was_agreed_on_is_worked_out_anew_and_nothing_is_rewritten(overlap):
    project = make_project(overlap=overlap)
    open_records(project, 1)
    people = make_annotators(project, overlap)
    query_id = next(answer(project, person, choice) for person, choice in zip(people, (0, 0, 1)[:overlap], strict=True))
    for person, choice in zip(people[1:], (0, 1), strict=False):
        answer(project, person, choice)
    first = Label.objects.get(annotator=people[0])
    changed = correct(project, people[0], query_id, 1)
    first.refresh_from_db()
    assert (first.choice, first.superseded_at is not None, changed.supersedes_id) == (0, True, first.pk)
    agreed = Consensus.objects.get()
    assert (agreed.choice, agreed.votes, agreed.agreeing) == (1, overlap, 1 if overlap == 1 else 2)
    assert Query.objects.get().state == QueryState.CLOSED
    assert correct(project, people[0], query_id, 1) == changed


def test_answers_that_differ_now_are_disputed():
    project, _, people = asked_project(1, 2, overlap=2)
    query_id, _same = (answer(project, person, 0) for person in people)
    correct(project, people[1], query_id, 2)
    assert Query.objects.get().state == QueryState.DISPUTED
    assert not Consensus.objects.exists()
    correct(project, people[1], query_id, 0)
    assert Query.objects.get().state == QueryState.CLOSED


def test_an_answer_from_before_a_training_stays_and_a_later_one_does_not():
    project, _, (person,) = asked_project(2)
    used = answer(project, person, 0)
    mark_labels_used(project=project, last_consensus_id=Consensus.objects.latest("pk").pk)
    later = answer(project, person, 0)
    with pytest.raises(UndoRefused):
        correct(project, person, used, 1)
    correct(project, person, later, 1)
    assert Consensus.objects.get(query=used).choice == 0
    assert Consensus.objects.get(query=later).choice == 1


def test_a_hidden_check_stays_and_changes_as_other_questions_do():
    project = make_project(oracle="crowd")
    candidates = make_candidates(project, ["play jazz", "play rock"])
    queue.open_queries(project=project, round_number=1, query_ids=[one.pk for one in candidates])
    (person,) = make_annotators(project, 1)
    asked = answer(project, person, 0)
    check = answer(project, person, 0)
    Consensus.objects.filter(query=check).delete()
    Query.objects.filter(pk=check).update(state=QueryState.GOLD)
    GoldQuery.objects.create(query_id=check, choice=1, source="public", added_by=project.created_by)
    for query_id in (asked, check):
        correct(project, person, query_id, 1)
    assert not Consensus.objects.filter(query=check).exists()
    mark_labels_used(project=project, last_consensus_id=Consensus.objects.latest("pk").pk)
    for query_id in (asked, check):
        with pytest.raises(UndoRefused):
            correct(project, person, query_id, 2)


def test_a_managers_decision_stands_and_nobody_can_tell_it_was_made():
    project, _, people = asked_project(1, 2, overlap=2)
    query_id = answer(project, people[0], 0)
    answer(project, people[1], 1)
    services.settle(project=project, query_id=query_id, choice=2, person=project.created_by)
    correct(project, people[0], query_id, 1)
    assert Consensus.objects.get().choice == 2
    assert Label.objects.get(annotator=people[0], superseded_at=None).choice == 1


def test_nobody_changes_an_answer_of_somebody_else():
    project, _, people = asked_project(1, 2)
    query_id = answer(project, people[0], 0)
    with pytest.raises(UndoRefused):
        correct(project, people[1], query_id, 1)


class TestSendingBack:
    def test_it_comes_with_its_comment_and_is_settled_by_an_answer(self):
        project, _, (person,) = asked_project(3)
        used = answer(project, person, 0)
        mark_labels_used(project=project, last_consensus_id=Consensus.objects.latest("pk").pk)
        asked = answer(project, person, 0)
        untouched = Query.objects.exclude(pk__in=[used, asked]).get().pk
        for _ in range(2):
            sent = correcting.send_back(project=project, query_ids=[used, asked, untouched], comment="is it?")
        assert sent == [asked]
        report = Report.objects.get(kind=ReportKind.RETURNED)
        assert (report.query_id, report.annotator_id, report.comment) == (asked, person.pk, "is it?")
        correct(project, person, asked, 0)
        report.refresh_from_db()
        assert report.resolved_by_id == person.pk

    def test_questions_of_another_project_are_left_alone(self):
        project, other = make_project(), make_project()
        open_records(other, 1)
        (person,) = make_annotators(other, 1)
        asked = answer(other, person, 0)
        assert correcting.send_back(project=project, query_ids=[asked], comment="hm") == []
        assert flags.set_aside_chosen(project=project, query_ids=[asked]) == []

    def test_a_crowd_and_randomised_answers_are_never_sent_back(self, monkeypatch):
        with pytest.raises(InvalidConfiguration, match="crowd"):
            correcting.send_back(project=make_project(oracle="crowd"), query_ids=[1], comment="hm")
        monkeypatch.setattr(Project, "settings", {"label_randomizer": "randomized_answers"})
        for change in (
            lambda project: correcting.send_back(project=project, query_ids=[1], comment="hm"),
            lambda project: flags.set_aside_chosen(project=project, query_ids=[1]),
        ):
            with pytest.raises(InvalidConfiguration, match=r"(?i)randomised answers"):
                change(make_project())

    def test_a_comment_says_what_to_look_at(self):
        with pytest.raises(InvalidConfiguration, match="comment"):
            correcting.send_back(project=make_project(), query_ids=[1], comment=" ")


def test_open_questions_are_set_aside_and_others_are_not():
    project, _, (person,) = asked_project(2)
    closed = answer(project, person, 0)
    still = Query.objects.exclude(pk=closed).get().pk
    assert flags.set_aside_chosen(project=project, query_ids=[closed, still]) == [still]
    assert Query.objects.get(pk=still).state == QueryState.SET_ASIDE
    assert Assignment.objects.get().query_id == closed
