import threading

import pytest
from django.core.files.base import ContentFile
from django.db import connection, connections, transaction

from annotation.data.services import streams
from annotation.errors import IdempotencyKeyReused, InvalidRecords, InvalidUpload, NotAStream, StreamFull
from annotation.models import Dataset, RecordPost
from tests.factories import make_project, make_user, open_preset, receive_upload

pytestmark = pytest.mark.django_db
COLUMNS = [
    {"name": "amount", "low": 0.0, "high": 100.0},
    {"name": "country", "categories": ["NO", "SE"]},
    {"name": "age", "low": 0.0, "high": 120.0, "missing": 50.0},
]


def open_project(**settings):
    return open_preset(
        make_user(),
        "fraud-stream",
        name="frauds",
        classes=["honest", "fraud"],
        question="Is this fraud?",
        **{"data_kind": "text"} | settings,
    )


def texts(*words):
    return [{"text": word} for word in words]


def test_records_take_slots_in_the_order_they_come():
    project = open_project()
    first = streams.post_records(project=project, records=texts("a", "b"))
    second = streams.post_records(project=project, records=texts("c"))
    assert (first.accepted, first.first_slot, second.first_slot) == (2, 0, 2)
    assert Dataset.objects.get(project=project).row_count == 3
    bodies = RecordPost.objects.order_by("first_slot").values_list("body", flat=True)
    assert [bytes(body) for body in bodies] == [b'["a","b"]', b'["c"]']


def test_the_same_key_stores_once_and_other_records_under_it_are_refused():
    project = open_project()
    first = streams.post_records(project=project, records=texts("a"), key="k")
    again = streams.post_records(project=project, records=texts("a"), key="k")
    assert (again.first_slot, again.repeated, first.repeated) == (first.first_slot, True, False)
    with pytest.raises(IdempotencyKeyReused):
        streams.post_records(project=project, records=texts("b"), key="k")
    assert RecordPost.objects.count() == 1
    assert Dataset.objects.get(project=project).row_count == 1


def test_a_key_is_still_known_after_the_records_were_examined():
    project = open_project()
    streams.post_records(project=project, records=texts("a", "b"), key="k")
    streams.forget_examined(project=project, next_slot=1)
    assert RecordPost.objects.get().body is not None
    streams.forget_examined(project=project, next_slot=2)
    assert RecordPost.objects.get().body is None
    assert streams.post_records(project=project, records=texts("a", "b"), key="k").repeated
    assert streams.forget_old_posts() == 0
    RecordPost.objects.update(created_at="2020-01-01T00:00:00Z")
    assert streams.forget_old_posts() == 1


def test_every_bad_row_is_named_and_nothing_is_stored():
    project = open_project(data_kind="table", columns=COLUMNS)
    good = {"amount": 3, "country": "NO"}
    rows = [
        good | {"amount": "many"},
        good,
        [],
        {"amount": 1},
        good | {"country": "DK"},
        good | {"other": 1},
        good | {"amount": float("inf")},
    ]
    with pytest.raises(InvalidRecords) as refusal:
        streams.post_records(project=project, records=rows)
    assert refusal.value.errors == [
        {"row": 3, "field": "", "rule": "is not a JSON object"},
        {"row": 4, "field": "country", "rule": "is missing"},
        {"row": 6, "field": "", "rule": "is not a field of this project"},
    ]
    with pytest.raises(InvalidRecords) as refusal:
        streams.post_records(project=project, records=[rows[0], good, rows[4], rows[6]])
    assert [(fault["row"], fault["field"]) for fault in refusal.value.errors] == [
        (1, "amount"),
        (3, "country"),
        (4, "amount"),
    ]
    assert not RecordPost.objects.exists()
    assert Dataset.objects.get(project=project).row_count == 0
    assert streams.post_records(project=project, records=[good, good | {"age": None}]).accepted == 2


def test_nothing_and_too_much_are_refused(settings):
    project = open_project()
    with pytest.raises(InvalidRecords):
        streams.post_records(project=project, records=[])
    settings.STREAM_POST_RECORDS = 2
    with pytest.raises(InvalidRecords):
        streams.post_records(project=project, records=texts("a", "b", "c"))
    settings.STREAM_BACKLOG_RECORDS = 3
    streams.post_records(project=project, records=texts("a", "b"))
    with pytest.raises(StreamFull):
        streams.post_records(project=project, records=texts("c", "d"))
    assert Dataset.objects.get(project=project).row_count == 2


def test_uploads_and_posts_do_not_mix():
    with pytest.raises(NotAStream):
        streams.post_records(project=make_project(), records=texts("a"))
    with pytest.raises(InvalidUpload, match="over the REST interface"):
        receive_upload(project=open_project(), file=ContentFile(b"text\na\n"), name="x.csv")


@pytest.mark.django_db(transaction=True)
def test_senders_at_once_leave_no_gap_and_a_key_sent_twice_at_once_counts_once():
    project = open_project()

    def send(number):
        try:
            streams.post_records(project=project, records=texts("a", "b", "c"), key=f"key {number // 2}")
        finally:
            connections.close_all()

    senders = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    slots = list(RecordPost.objects.order_by("first_slot").values_list("first_slot", flat=True))
    assert slots == [0, 3, 6, 9]
    assert Dataset.objects.get(project=project).row_count == 12


@pytest.mark.django_db(transaction=True)
def test_a_worker_is_told_once_while_records_wait(monkeypatch):
    told = []
    monkeypatch.setattr(streams.jobs, "send_project_changed", told.append)
    project = open_project()
    for _ in range(3):
        streams.post_records(project=project, records=texts("a"))
    assert told == [project.pk]
    with transaction.atomic():
        streams.forget_examined(project=project, next_slot=3)
    streams.post_records(project=project, records=texts("a"))
    assert told == [project.pk] * 2
    assert not connection.in_atomic_block
