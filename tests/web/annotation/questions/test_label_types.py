"""Types of label on their way: the question, the answer, what is agreed on, the tables, and the files."""

import json

import pytest
from django.db import IntegrityError
from django.urls import reverse

from annotation.choices.presets import PRESETS
from annotation.data.services import label_files
from annotation.errors import ConfigurationFrozen
from annotation.models import Assignment, AssignmentState, Consensus, Label, Project, Query, QueryState, Role
from annotation.projects.forms.drafts import draft_form
from annotation.projects.services.configuring import configure_project
from annotation.questions.selectors import answer_name
from annotation.questions.services import labels, queue
from annotation.review import selectors as browsing
from annotation.review import services as comparing
from tests.clients import browser_of
from tests.factories import add_members, asked_project, make_annotators, make_project, make_user, open_records
from tests.markup import tight

pytestmark = pytest.mark.django_db
STEPS = ["very bad", "bad", "fair", "good", "very good"]


def answer(project, choices):
    for person, choice in zip(make_annotators(project, len(choices)), choices, strict=True):
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)


def exported(project, format_name="jsonl"):
    pieces = label_files.export_labels(project=project, format=format_name)
    return b"".join(pieces).decode()


class TestRating:
    def test_a_scale_has_keys_and_stores_its_step(self):
        project, _, (person,) = asked_project(question_kind="rating", classes=STEPS)
        web = browser_of(person)
        html = tight(web.get(reverse("annotation:label", args=(project.slug,))).content.decode())
        assert 'class="scale"' in html
        assert 'value="4" data-shortcut="5"' in html
        held = Assignment.objects.get(state=AssignmentState.LEASED)
        web.post(reverse("annotation:submit", args=(held.pk,)), {"choice": 3})
        assert Label.objects.get().choice == 3
        assert json.loads(exported(project))["answer"] == "good"

    @pytest.mark.parametrize(("given", "found"), [([0, 2, 4], 2), ([4, 4, 0], 4)])
    def test_the_median_is_agreed_on(self, given, found):
        project = make_project(question_kind="rating", classes=STEPS, overlap=3)
        open_records(project, 1)
        answer(project, given)
        agreed = Consensus.objects.get()
        assert (agreed.choice, agreed.votes, agreed.agreeing) == (found, 3, given.count(found))

    def test_two_middle_answers_that_differ_wait_for_a_third_or_a_manager(self):
        project = make_project(question_kind="rating", classes=STEPS, overlap=2, overlap_limit=3)
        open_records(project, 1)
        answer(project, [0, 3])
        assert not Consensus.objects.exists()
        answer(project, [4])
        assert Consensus.objects.get().choice == 3
        divided = make_project(question_kind="rating", classes=STEPS, overlap=2)
        open_records(divided, 1)
        answer(divided, [0, 3])
        assert Query.objects.get(project=divided).state == QueryState.DISPUTED

    def test_the_database_refuses_a_scale_without_keys(self):
        project = make_project(question_kind="rating", classes=STEPS)
        with pytest.raises(IntegrityError, match="annotation_project_scale_has_keys"):
            Project.objects.filter(pk=project.pk).update(classes=[f"step {number}" for number in range(12)])

    def test_agreement_knows_the_order(self):
        near, far = (
            _compared(make_project(question_kind="rating", classes=STEPS, overlap=2), pairs)
            for pairs in ([(0, 1), (4, 4), (2, 2)], [(0, 4), (4, 4), (2, 2)])
        )
        assert near.alpha > far.alpha
        add_members(near.project, near.project.created_by, role=Role.MANAGER)
        web = browser_of(near.project.created_by)
        page = web.get(reverse("annotation:quality", args=(near.project.slug,))).content.decode()
        assert "alpha, ordinal" in page

    def test_what_is_asked_stays_once_it_was_asked(self):
        project = make_project(question_kind="rating", classes=STEPS)
        open_records(project, 1)
        with pytest.raises(ConfigurationFrozen, match="question_kind"):
            configure_project(project=project, actor=project.created_by, changes={"question_kind": "choose"})


def _compared(project, pairs):
    open_records(project, len(pairs))
    people = make_annotators(project, 2)
    for pair in pairs:
        for person, choice in zip(people, pair, strict=True):
            labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)
    report = comparing.start_report(project=project, owner=project.created_by)
    comparing.make_report(job_id=str(report.job_id))
    report.refresh_from_db()
    return report


def test_an_open_project_of_a_type_by_the_page_and_by_rest():
    owner = make_user()
    assert owner.pk
    project = make_project(owner=owner, question_kind="rating", classes=STEPS)
    open_records(project, 1)
    answer(project, [1])
    (row,) = browsing.questions(project, browsing.WantedQuestions(choice=1), readable=True).rows
    assert (row.agreed, row.answers) == (answer_name(project, 1), [("bad", 1)])
    assert not browsing.questions(project, browsing.WantedQuestions(choice=2), readable=True).rows


@pytest.mark.parametrize(
    ("preset", "steps", "broken"),
    [("pool-experts", 5, None), ("voice-crowd", 5, None), ("pool-experts", 12, "classes")],
)
def test_a_new_project_asks_for_ratings_and_refuses_too_many_steps(preset, steps, broken):
    typed = {"name": "Tone", "question": "How friendly?", "classes": "\n".join(f"step {n}" for n in range(steps))}
    form = draft_form(PRESETS[preset], {**typed, "question_kind": "rating"})
    assert set(form.errors) == ({broken} if broken else set())
    assert form.cleaned_data["question_kind"] == "rating"
    assert "question_kind" in form.fields
    unsaid = draft_form(PRESETS[preset], typed)
    assert unsaid.is_valid()
    assert unsaid.values()["question_kind"] == "choose"
