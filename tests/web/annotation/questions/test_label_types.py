"""Sets of classes and spans on their way: boxes, answers, what is agreed on, tables, files there and back, REST."""

import json
from datetime import timedelta
from io import BytesIO

import pytest
from django.core.files import File
from django.db import IntegrityError
from django.test import Client
from django.urls import reverse

from annotation.choices.label_types.class_sets import number_of
from annotation.choices.presets import PRESETS
from annotation.data.services import datasets, label_files
from annotation.data.services.mappings import layout_of
from annotation.errors import ConfigurationFrozen, InvalidUpload
from annotation.models import (
    Assignment,
    AssignmentState,
    Consensus,
    DatasetRole,
    Label,
    Project,
    Query,
    QueryState,
    Role,
)
from annotation.models.quality import GoldQuery
from annotation.projects.forms.drafts import draft_form
from annotation.projects.services.configuring import configure_project
from annotation.questions.selectors import answer_name, spans_of
from annotation.questions.services import checks as gold
from annotation.questions.services import labels, queue
from annotation.review import selectors as browsing
from annotation.review import services as comparing
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from dpal.spans.text import Span
from tests.clients import browser_of
from tests.factories import (
    add_members,
    asked_project,
    make_account,
    make_annotators,
    make_project,
    make_records,
    make_user,
    open_records,
    receive_upload,
)
from tests.markup import tight

pytestmark = pytest.mark.django_db
GENRES = ["drama", "comedy", "a, b", "war"]


def open_several(**settings):
    values = {"labels_per_record": 2, "none_allowed": True, "classes": GENRES, "training_delta": 1e-6}
    account = make_account(delta_limit=1e-4)
    return make_project(question_kind="several", estimator="label_sets", pool_account=account, **(values | settings))


class TestSeveral:
    @pytest.mark.parametrize(
        ("sent", "said"),
        [
            ({}, "Tick classes, or"),
            ({"choice": ["0", "1", "3"]}, "at most 2 of the classes"),
            ({"choice": "4"}, "Choose one of those below"),
            ({"choice": "0", "none": "1"}, "Tick classes, or"),
            ({"choice": "first"}, "Choose one of those below"),
        ],
    )
    def test_what_is_no_answer_is_asked_again(self, sent, said):
        project = open_several()
        (person,) = make_annotators(project, 1)
        open_records(project, 1)
        held = queue.claim_next(project=project, user=person)
        again = browser_of(person).post(reverse("annotation:submit", args=(held.pk,)), sent)
        assert again.status_code == 422
        assert said in again.content.decode()
        ticked = [place for place in sent.get("choice", []) if place in "0123"]
        assert tight(again.content.decode()).count('" checked>') == len(ticked)
        assert not Label.objects.exists()

    def test_none_only_where_it_is_allowed(self):
        project = open_several(none_allowed=False)
        (person,) = make_annotators(project, 1)
        open_records(project, 1)
        held = queue.claim_next(project=project, user=person)
        web = browser_of(person)
        assert 'name="none"' not in web.get(reverse("annotation:label", args=(project.slug,))).content.decode()
        again = web.post(reverse("annotation:submit", args=(held.pk,)), {"none": "1"})
        assert "Choose at least one of the classes." in again.content.decode()

    def test_a_thousand_classes_are_found_by_typing_and_ticked_without_a_script(self):
        project = open_several(classes=[f"class {number}" for number in range(1000)], labels_per_record=6)
        (person,) = make_annotators(project, 1)
        open_records(project, 1)
        html = tight(browser_of(person).get(reverse("annotation:label", args=(project.slug,))).content.decode())
        assert 'id="find"' in html
        assert 'id="chosen"' in html
        assert html[html.index("<noscript>") :].count('type="checkbox" name="choice"') == 1000
        held = Assignment.objects.get()
        browser_of(person).post(reverse("annotation:submit", args=(held.pk,)), {"choice": ["5", "999", "61"]})
        assert Label.objects.get().choice == number_of([5, 61, 999])

    def test_each_class_has_its_majority(self):
        project = open_several(overlap=3)
        open_records(project, 1)
        answer(project, [number_of([0, 1]), number_of([0]), number_of([1, 3])])
        agreed = Consensus.objects.get()
        assert (agreed.choice, agreed.votes, agreed.agreeing) == (number_of([0, 1]), 3, 2)

    def test_without_any_majority_a_manager_decides_by_the_same_boxes(self):
        project = open_several(overlap=2)
        open_records(project, 1)
        answer(project, [number_of([0]), number_of([3])])
        assert Query.objects.get().state == QueryState.DISPUTED
        add_members(project, project.created_by, role=Role.MANAGER)
        web = browser_of(project.created_by)
        page = tight(web.get(reverse("annotation:review", args=(project.slug,))).content.decode())
        assert page.count('type="checkbox" name="choice"') == 5
        settle = reverse("annotation:settle", args=(project.slug, Query.objects.get().pk))
        web.post(settle, {"choice": ["0", "1", "2"]})
        assert not Consensus.objects.exists()
        web.post(settle, {"choice": ["0", "3"]})
        assert Consensus.objects.get().choice == number_of([0, 3])

    def test_own_answers_are_read_and_changed(self):
        project = open_several()
        (person,) = make_annotators(project, 1)
        (query,) = open_records(project, 1)
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=number_of([0, 2]))
        web = browser_of(person)
        page = tight(web.get(reverse("annotation:own_answers", args=(project.slug,))).content.decode())
        assert "drama, a, b" in page
        assert page.count("checked") == 2
        web.post(reverse("annotation:correct_answer", args=(project.slug, query.pk)), {"choice": ["3"]})
        assert Label.objects.get(superseded_at=None).choice == number_of([3])
        web.post(reverse("annotation:correct_answer", args=(project.slug, query.pk)), {"choice": ["0", "none"]})
        assert Label.objects.get(superseded_at=None).choice == number_of([3])

    def test_the_table_finds_a_class_among_several(self):
        project = open_several(classes=[f"class {number}" for number in range(70)])
        open_records(project, 3)
        (person,) = make_annotators(project, 1)
        for places in ([0, 61], [60, 61], [0]):
            labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=number_of(places))
        found = {
            place: len(browsing.questions(project, browsing.WantedQuestions(choice=place), readable=True).rows)
            for place in (0, 1, 60, 61, 69)
        }
        assert found == {0: 2, 1: 0, 60: 1, 61: 2, 69: 0}
        (row,) = browsing.questions(project, browsing.WantedQuestions(choice=60), readable=True).rows
        assert row.agreed == "class 60, class 61"

    def test_labels_are_refused_by_line_and_rule(self):
        project = open_several()
        body = b"text,label\none,drama|war\ntwo,opera\nthree,drama|comedy|war\nfour,\n"
        dataset = receive_upload(
            project=project,
            file=File(BytesIO(body)),
            name="t.csv",
            role="public_test",
            send=False,
            mapping={"text": "text", "label": "label"},
        )
        datasets.import_dataset(job_id=dataset.job_id)
        dataset.refresh_from_db()
        assert list(dataset.records.order_by("row_number").values_list("label", flat=True)) == [number_of([0, 3]), 0]
        assert [(row["line"], row["reason"]) for row in dataset.bad_row_report] == [
            (3, "is not one of the project's classes"),
            (4, "names more than 2 classes"),
        ]
        with pytest.raises(InvalidUpload, match="one class each"):
            receive_upload(
                project=project,
                file=File(BytesIO(body)),
                name="t.csv",
                role="public_start",
                send=False,
                mapping={"text": "text", "label": "label"},
            )

    def test_public_examples_become_hidden_checks_and_answers_are_judged_by_the_whole_set(self):
        project = open_several()
        body = File(BytesIO(b"text,label\none,drama|war\n"))
        dataset = receive_upload(
            project=project,
            file=body,
            name="t.csv",
            role="public_test",
            send=False,
            mapping={"text": "text", "label": "label"},
        )
        datasets.import_dataset(job_id=dataset.job_id)
        dataset.refresh_from_db()
        assert gold.add_public_checks(project=project, dataset=dataset, owner=project.created_by, most=5) == 1
        assert GoldQuery.objects.get().choice == number_of([0, 3])
        add_members(project, project.created_by, role=Role.MANAGER)
        page = browser_of(project.created_by).get(reverse("annotation:checks", args=(project.slug,))).content.decode()
        assert "drama, war" in page

    def test_agreement_counts_what_sets_share(self):
        near, far = (
            _compared(
                open_several(overlap=2, aggregation="dawid_skene"), [[number_of(s) for s in pair] for pair in pairs]
            )
            for pairs in ([([0, 1], [0]), ([2], [2]), ([3], [3])], [([0, 1], [3]), ([2], [2]), ([3], [3])])
        )
        assert near.alpha > far.alpha
        assert near.method == "majority"
        add_members(near.project, near.project.created_by, role=Role.MANAGER)
        page = browser_of(near.project.created_by).get(reverse("annotation:quality", args=(near.project.slug,)))
        assert "MASI distance of sets" in page.content.decode()
        assert "dawid_skene" not in page.content.decode()


def test_several_classes_by_rest():
    project = open_several()
    (person,) = make_annotators(project, 1)
    open_records(project, 3)
    token = tokens.create_token(user=person, name="t", scopes=[Scope.LABELS_WRITE.value], lifetime=timedelta(days=1))[1]
    web = Client(headers={"Authorization": f"Bearer {token}"})

    def post(path, body=None):
        return web.post(f"/api/v1/{path}", json.dumps(body or {}), content_type="application/json")

    asked = post(f"projects/{project.slug}/assignments").json()
    assert (asked["classes"], asked["most_classes"], asked["none_allowed"]) == (GENRES, 2, True)
    for wrong in ({"choice": 1}, {}, {"choices": [0, 0]}, {"choices": [0, 1, 2]}, {"choices": [4]}):
        assert post(f"assignments/{asked['id']}/label", wrong).status_code in (409, 422), wrong
    stored = post(f"assignments/{asked['id']}/label", {"choices": [3, 0]}).json()
    assert (stored["choice"], stored["choices"]) == (None, [0, 3])
    assert Label.objects.get().choice == number_of([0, 3])
    asked = post(f"projects/{project.slug}/assignments").json()
    assert post(f"assignments/{asked['id']}/label", {"choices": []}).json()["choices"] == []
    single = make_project()
    add_members(single, person)
    open_records(single, 1)
    asked = post(f"projects/{single.slug}/assignments").json()
    assert (asked["most_classes"], asked["none_allowed"]) == (None, False)
    assert post(f"assignments/{asked['id']}/label", {"choices": [1]}).status_code in (409, 422)
    assert post(f"assignments/{asked['id']}/label", {"choice": 1}).json()["choices"] is None


def test_a_new_project_asks_for_several_classes():
    typed = {"name": "Genres", "question": "Which genres?", "classes": "\n".join(GENRES), "question_kind": "several"}
    form = draft_form(PRESETS["pool-experts"], typed)
    assert not form.errors
    assert form.values()["estimator"] == "label_sets"
    form = draft_form(PRESETS["pool-experts"], {**typed, "estimator": "label_sets", "labels_per_record": "2"})
    assert not form.errors
    assert {"labels_per_record", "none_allowed"} <= form.fields.keys()
    assert form.values()["labels_per_record"] == 2


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


TEXT = "Ada flew to Paris"
ADA, PARIS = Span(0, 3, "name"), Span(12, 17, "place")


def ask(overlap=1):
    project = make_project(question_kind="spans", classes=["name", "place"], overlap=overlap)
    (record,) = make_records(project, [TEXT])
    queue.open_queries(project=project, round_number=1, record_ids=[record.pk])
    return project, make_annotators(project, overlap)


def stored(project):
    choice = Label.objects.get(superseded_at=None).choice
    return spans_of(project, [choice])[choice]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({}, "Marking spans needs JavaScript."),
        ({"spans": "no list"}, "never overlap"),
        ({"spans": "[" * 100_000}, "never overlap"),
        ({"spans": '[[0,3,"name"],[2,8,"name"]]'}, "never overlap"),
        ({"spans": '[[0,3,"date"]]'}, "one of the classes"),
    ],
)
def test_other_answers_are_refused(sent, said):
    project, (person,) = ask()
    held = queue.claim_next(project=project, user=person)
    response = browser_of(person).post(reverse("annotation:submit", args=(held.pk,)), sent)
    assert response.status_code == 422
    assert said in response.content.decode()
    assert not Label.objects.exists()


def test_a_page_stores_them_and_own_answers_show_their_words():
    project, (person,) = ask()
    held = queue.claim_next(project=project, user=person)
    web = browser_of(person)
    web.post(reverse("annotation:submit", args=(held.pk,)), {"spans": '[[12,17,"place"],[0,3,"name"]]'})
    assert stored(project) == (ADA, PARIS)
    assert Consensus.objects.get().choice == Label.objects.get().choice
    for place, n in enumerate((1, 1)):
        assert len(browsing._naming(project, Label.objects.all(), place)) == n
    page = web.get(reverse("annotation:own_answers", args=(project.slug,))).content.decode()
    assert "name: Ada; place: Paris" in page
    assert 'name="choice"' not in page
    web.post(reverse("annotation:correct_answer", args=(project.slug, held.query_id)), {"spans": '[[0,3,"name"]]'})
    assert stored(project) == (ADA,)


def test_programs_give_them_and_get_them_back():
    project, (person,) = ask()
    token = tokens.create_token(user=person, name="t", scopes=[Scope.LABELS_WRITE.value], lifetime=timedelta(days=1))[1]
    web = Client(headers={"Authorization": f"Bearer {token}"})

    def post(path, body):
        return web.post(f"/api/v1/{path}", json.dumps(body), content_type="application/json")

    held = post(f"projects/{project.slug}/assignments", {}).json()
    said = [{"start": 0, "end": 3, "type": "name"}]
    for wrong in ({"choice": 0}, {"spans": said, "choice": 0}, {"spans": [said[0] | {"end": 40}]}):
        assert post(f"assignments/{held['id']}/label", wrong).status_code == 422
    answer = post(f"assignments/{held['id']}/label", {"spans": said}).json()
    assert (answer["spans"], answer["choice"], answer["choices"]) == (said, None, None)
    (own,) = web.get(f"/api/v1/projects/{project.slug}/answers").json()["answers"]
    assert (own["spans"], own["answer"]) == (said, "name: Ada")


def test_files_of_classes_are_refused():
    project, _people = ask()
    with pytest.raises(InvalidUpload):
        layout_of(project, DatasetRole.PUBLIC_START, {"text": "text", "label": "label"})
    assert layout_of(project, DatasetRole.PUBLIC_TEST, {"text": "text", "label": "spans"}).spans
    assert layout_of(project, DatasetRole.POOL, {"text": "text"}).text == "text"


def test_a_reviewer_decides_between_different_sets():
    project, people = ask(overlap=2)
    reviewer = make_user()
    add_members(project, reviewer, role=Role.REVIEWER)
    for person, spans in zip(people, ('[[0,3,"name"]]', "[]"), strict=True):
        held = queue.claim_next(project=project, user=person)
        browser_of(person).post(reverse("annotation:submit", args=(held.pk,)), {"spans": spans})
    query = Query.objects.get()
    assert query.state == QueryState.DISPUTED
    web = browser_of(reviewer)
    page = web.get(reverse("annotation:review", args=(project.slug,))).content.decode()
    assert "name: Ada" in page
    assert "no spans" in page
    web.post(reverse("annotation:settle", args=(project.slug, query.pk)), {"spans": '[[12,17,"place"]]'})
    agreed = Consensus.objects.get().choice
    assert spans_of(project, [agreed]) == {agreed: (PARIS,)}
