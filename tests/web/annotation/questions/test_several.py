"""Several classes a record on their way: boxes, answers, what is agreed on, tables, files there and back, REST."""

import json
from datetime import timedelta
from io import BytesIO

import pytest
from django.core.files import File
from django.test import Client
from django.urls import reverse

from annotation.choices.label_types.class_sets import number_of
from annotation.choices.presets import PRESETS
from annotation.data.services import datasets
from annotation.errors import InvalidUpload
from annotation.models import Assignment, Consensus, Label, Query, QueryState, Role
from annotation.models.quality import GoldQuery
from annotation.projects.forms.drafts import draft_form
from annotation.questions.services import checks as gold
from annotation.questions.services import labels, queue
from annotation.review import selectors as browsing
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from tests.clients import browser_of
from tests.factories import add_members, make_account, make_annotators, make_project, open_records, receive_upload
from tests.markup import tight
from tests.web.annotation.questions.test_label_types import _compared as compared
from tests.web.annotation.questions.test_label_types import answer

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
            compared(
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
