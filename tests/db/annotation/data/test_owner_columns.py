"""The owner's id and columns travel with a record of a trusted project, and behind a gate nothing of them is kept."""

import csv
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.files.base import ContentFile
from django.db import connection, transaction
from django.urls import reverse

from annotation.data.readers.checks import OWNER_TOO_LONG
from annotation.data.services import datasets
from annotation.data.services.forgetting import empty_records
from annotation.data.services.label_files import TABLE_COLUMNS, export_labels
from annotation.errors import InvalidUpload
from annotation.models import Dataset, Project, Query, Record, Role
from annotation.projects.services.opening import create_project
from annotation.questions.services import labels, queue
from annotation.work.services.tokens import Scope
from tests.clients import browser_of, program_of
from tests.factories import add_members, make_annotators, make_project, make_records, make_user, receive_upload
from tests.pure.annotation.data.readers.test_parsers import archive, png
from tests.refusing import refused

pytestmark = pytest.mark.django_db(transaction=True)
MAPPING = {"id": "ticket", "metadata": ["url", "shop"]}
ROWS = [
    {"text": "first", "ticket": "T-1", "url": "https://example.org/1", "shop": "Ulm"},
    {"text": "second", "ticket": "T-2", "url": "", "shop": "7"},
]
KEPT = [
    {"id": "T-1", "columns": [["url", "https://example.org/1"], ["shop", "Ulm"]]},
    {"id": "T-2", "columns": [["url", None], ["shop", "7"]]},
]


@pytest.fixture(autouse=True)
def _apart(own_storage, monkeypatch):
    monkeypatch.setattr("celery.app.base.Celery.send_task", lambda app, name, *args, **kwargs: None)


def imported(project, data, name, mapping=MAPPING, role="pool"):
    dataset = receive_upload(
        project=project, file=ContentFile(data), name=name, role=role, mapping=mapping, uploaded_by=make_user()
    )
    datasets.import_dataset(job_id=dataset.job_id)
    return Dataset.objects.get(pk=dataset.pk)


def kept(dataset):
    return list(dataset.records.order_by("row_number").values_list("metadata", flat=True))


def delimited():
    sink = io.StringIO()
    writer = csv.DictWriter(sink, list(ROWS[0]))
    writer.writeheader()
    writer.writerows(ROWS)
    return sink.getvalue().encode()


def parquet():
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), sink)
    return sink.getvalue()


def test_the_folder_that_is_the_known_class_stands_beside_no_check():
    project = make_project(data_kind="image", image_height=2, image_width=3)
    data = archive(**{"music/one.png": png([[0, 1, 2], [3, 4, 5]])})
    checks = imported(project, data, "a.zip", {"id": "file"}, role="public_test")
    assert kept(checks) == [{"id": "one.png", "columns": []}]


def test_a_cell_that_cannot_be_kept_names_its_row():
    long = delimited().replace(b"Ulm", b"U" * 1001)
    dataset = imported(make_project(), long, "rows.csv")
    assert kept(dataset) == KEPT[1:]
    assert [(row["line"], row["column"], row["reason"]) for row in dataset.bad_row_report] == [
        (2, "shop", OWNER_TOO_LONG)
    ]


@pytest.mark.parametrize(
    ("mapping", "rule"),
    [
        ({"metadata": "url"}, "metadata: must be a list"),
        ({"metadata": ["url", "url"]}, "each once"),
        ({"metadata": [str(number) for number in range(21)]}, "20 columns at most"),
        ({"metadata": ["nowhere"]}, "metadata: the file has no column named 'nowhere'"),
        ({"id": "nowhere"}, "id: the file has no column named 'nowhere'"),
    ],
)
def test_what_cannot_be_a_mapping_is_refused(mapping, rule):
    with pytest.raises(InvalidUpload, match=rule):
        imported(make_project(), delimited(), "rows.csv", mapping)


@pytest.mark.parametrize("names", [{"id": "shop"}, {"metadata": ["shop"]}])
def test_the_answer_of_a_check_and_the_name_of_a_person_are_none(names):
    project = make_project()
    with pytest.raises(InvalidUpload, match="the column of the known label"):
        imported(project, delimited(), "rows.csv", {"label": "shop", **names}, role="public_test")
    with pytest.raises(InvalidUpload, match="metadata: leave out the contributor column"):
        imported(project, delimited(), "rows.csv", {"contributor": "shop", **names})


def asked(project, person):
    records = Record.objects.filter(dataset__project=project).order_by("row_number")
    queue.open_queries(project=project, round_number=1, record_ids=list(records.values_list("pk", flat=True)))
    return queue.claim_next(project=project, user=person)


def test_an_annotator_reads_them_and_every_file_gives_them_back():
    project = make_project()
    imported(project, delimited(), "rows.csv")
    (person,) = make_annotators(project, 1)
    held = asked(project, person)
    client = browser_of(person)
    page = client.get(reverse("annotation:label", args=[project.slug])).content.decode()
    assert "T-1" in page
    assert "https://example.org/1" in page
    assert "T-2" not in page
    claimed = program_of(person, Scope.LABELS_WRITE).post(f"/api/v1/projects/{project.slug}/assignments")
    assert (claimed.json()["owner_id"], claimed.json()["metadata"]) == ("T-1", dict(KEPT[0]["columns"]))
    labels.submit_label(assignment=held, choice=0)

    files = {name: b"".join(export_labels(project=project, format=name)) for name in ("csv", "jsonl", "parquet")}
    wanted = {"url": "https://example.org/1", "shop": "Ulm"}
    (row,) = csv.DictReader(io.StringIO(files["csv"].decode()))
    assert (row["owner_id"], row["metadata.url"], row["metadata.shop"]) == ("T-1", *wanted.values())
    assert list(row)[-2:] == ["metadata.url", "metadata.shop"]
    line = json.loads(files["jsonl"])
    assert (line["owner_id"], line["metadata"]) == ("T-1", wanted)
    assert list(line["metadata"]) == ["url", "shop"]
    (row,) = pq.read_table(io.BytesIO(files["parquet"])).to_pylist()
    assert (row["owner_id"], row["metadata.url"], row["metadata.shop"]) == ("T-1", *wanted.values())
    (task,) = json.loads(b"".join(export_labels(project=project, format="label_studio")))
    assert (task["meta"]["owner_id"], task["meta"]["metadata"]) == ("T-1", wanted)


def test_a_file_has_the_columns_of_all_uploads_each_once_and_under_a_name_of_its_own():
    project = make_project()
    later = {"text": "third", "answer": "theirs", "shop": "Bonn", "=1+1": "-"}
    imported(project, delimited(), "rows.csv")
    imported(project, json.dumps(later).encode(), "rows.jsonl", {"metadata": ["answer", "shop", "=1+1"]})
    (person,) = make_annotators(project, 1)
    labels.submit_label(assignment=asked(project, person), choice=0)
    for _ in range(2):
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
    (table, packed) = (b"".join(export_labels(project=project, format=name)) for name in ("csv", "parquet"))
    rows = list(csv.DictReader(io.StringIO(table.decode())))
    names = [f"metadata.{name}" for name in ("url", "shop", "answer", "=1+1")]
    assert list(rows[0]) == [*TABLE_COLUMNS, *names]
    assert {tuple(row[name] for name in ("text", *names)) for row in rows} == {
        ("first", "https://example.org/1", "Ulm", "", ""),
        ("second", "", "7", "", ""),
        ("third", "", "Bonn", "theirs", "'-"),
    }
    assert {row["answer"] for row in rows} == {project.classes[0]}
    typed = pq.read_table(io.BytesIO(packed)).select(["text", *names]).to_pylist()
    assert {tuple(row.values()) for row in typed} == {
        ("first", "https://example.org/1", "Ulm", None, None),
        ("second", None, "7", None, None),
        ("third", None, "Bonn", "theirs", "-"),
    }


def test_a_manager_reads_and_finds_them_where_the_record_may_be_read():
    project = make_project()
    imported(project, delimited(), "rows.csv")
    (person,) = make_annotators(project, 1)
    held = asked(project, person)
    manager = make_user("manager")
    add_members(project, manager, role=Role.MANAGER)
    client = browser_of(manager)
    program = program_of(manager, Scope.LABELS_READ)
    pages = [
        reverse("annotation:questions", args=[project.slug]),
        reverse("annotation:question", args=[project.slug, held.query_id]),
    ]

    def read():
        rows = program.get(f"/api/v1/projects/{project.slug}/questions").json()["questions"]
        return [client.get(page).content.decode() for page in pages], rows

    shown, rows = read()
    assert not any("T-1" in page for page in shown)
    assert {(row["owner_id"], row["metadata"]) for row in rows} == {(None, None)}
    add_members(project, manager, role=Role.ANNOTATOR)
    shown, rows = read()
    assert all("T-1" in page for page in shown)
    assert "https://example.org/1" in shown[1]
    told = [(row["owner_id"], row["metadata"]) for row in rows]
    assert told == [(row["id"], dict(row["columns"])) for row in reversed(KEPT)]
    found = client.get(pages[0], {"text": "T-1"}).context["rows"]
    assert [row.query.pk for row in found] == [held.query_id]


def test_they_go_with_the_record():
    project = make_project()
    dataset = imported(project, delimited(), "rows.csv")
    with transaction.atomic():
        empty_records(dataset.records.filter(row_number=0), project=project)
    assert kept(dataset) == [None, KEPT[1]]


class TestBehindAGate:
    """No question there knows its record, so nothing of the owner's may come near one."""

    @pytest.mark.parametrize("mapping", [{"id": "ticket"}, {"metadata": ["url"]}])
    @pytest.mark.parametrize("role", ["pool", "public_test"])
    def test_they_are_refused(self, mapping, role):
        with pytest.raises(InvalidUpload, match="behind a gate no question knows its record"):
            receive_upload(
                project=make_project(oracle="crowd", selection="uncertainty"),
                file=ContentFile(delimited()),
                name="rows.csv",
                role=role,
                mapping=mapping,
                uploaded_by=make_user(),
            )

    def test_no_project_that_has_some_becomes_one_of_a_crowd(self):
        owner = make_user()
        project = create_project(
            name="Requests",
            preset="pool-experts",
            owner=owner,
            data_kind="text",
            classes=["yes", "no"],
            question="Is it?",
            pool_epsilon=10.0,
            pool_delta=5e-5,
        )
        data = delimited().replace(b"shop", b"label").replace(b"Ulm", b"yes").replace(b"7", b"no")
        imported(project, data, "rows.csv", {"id": "ticket", "label": "label"}, role="public_test")
        with refused("annotation_record_metadata"):
            Project.objects.filter(pk=project.pk).update(oracle="crowd")

    def test_the_database_keeps_none(self):
        crowd = make_project(oracle="crowd", selection="uncertainty")
        (record,) = make_records(crowd, ["a"])
        with refused("annotation_record_metadata"):
            Record.objects.filter(pk=record.pk).update(metadata=KEPT[0])
        with refused("annotation_record_metadata"):
            Record.objects.create(dataset=record.dataset, row_number=7, text="b", metadata=KEPT[0])
        copied = "COPY annotation_record (dataset_id, row_number, text, metadata) FROM STDIN"
        with refused("annotation_record_metadata"), connection.cursor() as cursor, cursor.copy(copied) as copy:
            copy.write_row((record.dataset_id, 8, "c", json.dumps(KEPT[0])))
        trusted = make_project()
        (record,) = make_records(trusted, ["a"])
        Record.objects.filter(pk=record.pk).update(metadata=KEPT[0])
        with refused("annotation_record_metadata"):
            Record.objects.filter(pk=record.pk).update(dataset=crowd.datasets.get(), row_number=9)
        assert not Query.objects.exists()
