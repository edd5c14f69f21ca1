"""A Label Studio project comes in as records and, where a proof covers them, known labels; ours goes there and back."""

import json

import pytest
from django.core.files.base import ContentFile

from annotation.data.services import datasets
from annotation.data.services.label_files import export_labels
from annotation.errors import InvalidUpload
from annotation.models import Dataset, Label
from annotation.questions.services import checks as gold
from annotation.questions.services import labels, queue
from privacy.ledger.selectors import guarantee
from tests.factories import asked_project, make_project, make_user, receive_upload

pytestmark = pytest.mark.django_db(transaction=True)

# Written by Label Studio 1.23.2 of two tasks that it had imported from our own export; what is never read is cut out.
FULL = [
    {
        "id": 2,
        "annotations": [
            {
                "id": number,
                "completed_by": 1,
                "result": [
                    {
                        "from_name": "class",
                        "to_name": "record",
                        "type": "choices",
                        "value": {"choices": [choice]},
                        "meta": {"annotator": person},
                    }
                ],
                "was_cancelled": False,
                "ground_truth": True,
                "created_at": "2026-11-21T14:59:50.885555Z",
                "lead_time": None,
                "prediction": {},
                "parent_annotation": None,
            }
            for number, choice, person in ((3, "music", "person-4"), (4, "other", "person-5"))
        ],
        "drafts": [],
        "predictions": [],
        "data": {"text": "record 1"},
        "meta": {"dataset": 1, "row": 1, "consensus": None},
        "inner_id": 2,
        "total_annotations": 2,
        "cancelled_annotations": 0,
        "project": 1,
        "comment_authors": [],
    },
    {
        "id": 3,
        "annotations": [
            {
                "id": 5,
                "completed_by": 1,
                "result": [
                    {"from_name": "class", "to_name": "record", "type": "choices", "value": {"choices": ["other"]}}
                ],
                "was_cancelled": False,
            }
        ],
        "data": {"text": "record 2"},
    },
]


@pytest.fixture(autouse=True)
def apart(own_storage, monkeypatch):
    monkeypatch.setattr("celery.app.base.Celery.send_task", lambda app, name, *args, **kwargs: None)


def imported(project, data, **options):
    data = data if isinstance(data, bytes) else data.encode() if isinstance(data, str) else json.dumps(data).encode()
    dataset = receive_upload(
        project=project, file=ContentFile(data), name="export.json", uploaded_by=make_user(), **options
    )
    datasets.import_dataset(job_id=dataset.job_id)
    return Dataset.objects.select_related("job").get(pk=dataset.pk)


def rows_of(dataset):
    return list(dataset.records.order_by("row_number").values_list("text", "label"))


def test_tasks_become_a_pool_and_their_answers_are_never_read():
    project = make_project()
    pool = imported(project, FULL)
    assert rows_of(pool) == [("record 1", None), ("record 2", None)]
    assert not Label.objects.exists()


@pytest.mark.parametrize("mapping", [{"answers": "majority"}, {"annotator": "1"}])
def test_answers_to_a_pool_have_no_proof_and_are_refused(mapping):
    with pytest.raises(InvalidUpload, match="answers: a pool's answers may reveal"):
        imported(make_project(), FULL, mapping=mapping)
    assert not Dataset.objects.exists()


def test_answers_become_known_labels_of_public_examples_and_those_may_be_checks():
    project = make_project()
    known = imported(project, FULL, role="public_test")
    # The one control that was answered needs no name.
    assert known.mapping == {"label": "class"}
    assert rows_of(known) == [("record 2", 2)]
    assert known.bad_row_report == [{"line": 1, "column": "class", "reason": "has no majority among its answers"}]
    assert gold.add_public_checks(project=project, dataset=known, owner=make_user(), most=5) == 1


def test_one_named_annotators_answers_alone():
    known = imported(make_project(), FULL, role="public_test", mapping={"annotator": "person-4"})
    assert rows_of(known) == [("record 1", 1)]
    assert [bad["line"] for bad in known.bad_row_report] == [2]


def test_private_answers_pay_from_an_account_of_their_own():
    project = make_project()
    start = imported(project, FULL, role="charged_start", start_epsilon=2.0)
    assert rows_of(start) == [("record 2", 2)]
    assert guarantee(start.account).epsilon_limit == pytest.approx(2.0)
    with pytest.raises(InvalidUpload, match="start_epsilon"):
        imported(make_project(), FULL, role="charged_start")


def test_what_we_export_comes_back_as_it_was():
    project, _, people = asked_project(3, 2, overlap=2)
    for person, choices in zip(people, ((0, 1, 2), (0, 1)), strict=True):
        for choice in choices:
            labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)
    sent = b"".join(export_labels(project=project, format="label_studio"))
    known = imported(make_project(), sent, role="public_test")
    answered = {query.record.text: query.labels.first().choice for query in project.queries.all()}
    assert dict(rows_of(known)) == answered
    assert known.bad_row_count == 0
    second = imported(make_project(), sent, role="public_test", mapping={"annotator": people[1].username})
    assert (second.row_count, second.bad_row_count) == (2, 1)
