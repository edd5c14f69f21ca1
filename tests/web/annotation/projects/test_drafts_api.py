import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from annotation.data.services import datasets
from annotation.models import Dataset, Project
from annotation.models.imports import OpeningDraft
from annotation.questions.selectors import spans_of
from dpal.spans.text import Span
from privacy.ledger.models import LedgerEntry
from privacy.ledger.selectors import guarantee
from tests.clients import program_of
from tests.factories import make_opener, make_user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("reads_here")]
PRIVATE = b"note,who\nthe parcel never came,anna\nwonderful service,ben\n"
PUBLIC = b"note,kind\n" + b"late again,complaint\nthank you,praise\nwhere is it?,question\n" * 3
CROWD = {"preset": "voice-crowd", "contributor_column": "who", "text_column": "note"}


@pytest.fixture
def owner():
    return make_opener()


@pytest.fixture
def client(owner):
    return program_of(owner)


def draft(client, *, settings=None, public=True, **fields):
    files = {"file": SimpleUploadedFile("tickets.csv", PRIVATE)}
    if public:
        files["public"] = SimpleUploadedFile("known.csv", PUBLIC)
    return client.post("/api/v1/drafts", {**files, "settings": json.dumps(settings or {}), **fields})


def send(client, method, address, body=None):
    return client.generic(method, f"/api/v1/drafts/{address}", json.dumps(body or {}), content_type="application/json")


def test_two_files_become_a_project_as_on_the_page(client, owner):
    answer = draft(client, settings={"name": "Post", "pool_epsilon": 1}, text_column="note")
    assert answer.status_code == 201, answer.content
    told = answer.json()
    assert told["settings"]["classes"].split() == ["complaint", "praise", "question"]
    assert (told["settings"]["name"], told["settings"]["pool_epsilon"]) == ("Post", "1")
    assert (told["problems"], told["charge"], told["shared_rows"]) == ([], None, 0)
    assert {one["part"]: one["columns"]["note"] for one in told["files"]} == {"pool": "text", "public": "text"}
    assert client.get(told["page"]).status_code == 302
    assert not Project.objects.exists()

    opened = send(client, "POST", f"{told['id']}/open").json()
    project = Project.objects.get(slug=opened["project"]["slug"])
    assert (project.name, project.created_by, guarantee(project.pool_account).epsilon_limit) == ("Post", owner, 1)
    assert project.classes == ["complaint", "praise", "question"]
    assert sorted((one["role"], one["name"]) for one in opened["datasets"]) == [
        ("pool", "tickets.csv"),
        ("public_test", "known.csv"),
    ]
    assert Dataset.objects.get(role="pool").mapping["text"] == "note"
    assert send(client, "POST", f"{told['id']}/open").status_code == 404


def test_whoever_asks_for_spans_gets_a_model_of_spans(client):
    settings = {"question_kind": "spans", "classes": ["person", "day"], "estimator": "planned"}
    told = draft(client, settings=settings, public=False, text_column="note").json()
    assert (told["settings"]["estimator"], told["problems"]) == ("span_crf", [])
    send(client, "POST", f"{told['id']}/open")
    assert Project.objects.get().estimator == "span_crf"


SPANNED = [
    {"text": "please call Olga on friday", "spans": [[12, 16, "person"], [20, 26, "day"]]},
    {"text": "is nobody here at all today", "spans": []},
]


@pytest.mark.parametrize("column", ["spans", "label", "marks"])
@pytest.mark.parametrize("as_object", [True, False])
def test_a_file_of_offsets_opens_a_project_of_spans(client, column, as_object):
    names = ("start", "end", "label")
    rows = [
        {
            "text": row["text"],
            column: [dict(zip(names, one, strict=True)) if as_object else one for one in row["spans"]],
        }
        for row in SPANNED
    ]
    public = "".join(json.dumps(row) + "\n" for row in rows).encode()
    pool = public.replace(b"call", b"phone").replace(b"12, 16", b"13, 17").replace(b"nobody", b"no one")
    files = {"file": SimpleUploadedFile("a.jsonl", pool), "public": SimpleUploadedFile("b.jsonl", public)}
    told = client.post("/api/v1/drafts", files).json()
    assert told["problems"] == []
    chosen = ("question_kind", "classes", "estimator")
    assert [told["settings"][name] for name in chosen] == ["spans", "day\nperson", "span_crf"]
    assert told["settings"]["question"] == "Which parts of the text belong to a class?"
    assert [one["columns"] for one in told["files"]] == [
        {"text": "text", column: ""},
        {"text": "text", column: "label"},
    ]
    send(client, "POST", f"{told['id']}/open")
    for dataset in Dataset.objects.order_by("pk"):
        datasets.import_dataset(job_id=dataset.job_id)
    known = Dataset.objects.get(role="public_test")
    assert (known.state, known.row_count) == ("ready", 2), known.bad_row_report
    assert spans_of(known.project, [known.records.get(row_number=0).label or 0]).popitem()[1] == (
        Span(12, 16, "person"),
        Span(20, 26, "day"),
    )


def test_what_opening_is_charged_is_told_first_and_refused_above_what_was_agreed_to(client):
    told = draft(client, settings={"question": "Which?"}, **CROWD).json()
    assert told["charge"]["epsilon"] > 0
    less = told["charge"]["epsilon"] / 2
    refused = send(client, "POST", f"{told['id']}/open", {"most_epsilon": less, "confirm_few": True})
    assert (refused.status_code, "is charged epsilon" in refused.json()["detail"]) == (422, True)
    assert not Project.objects.exists()
    assert not LedgerEntry.objects.filter(kind="reserve").exists()
    agreed = {"most_epsilon": told["charge"]["epsilon"], "confirm_few": True}
    assert send(client, "POST", f"{told['id']}/open", agreed).status_code == 201


def test_what_keeps_a_project_from_opening_is_told_and_nothing_is_opened(client):
    told = draft(client, public=False).json()
    assert any(problem.startswith("classes: ") for problem in told["problems"])
    assert send(client, "POST", f"{told['id']}/open").status_code == 422
    assert not Project.objects.exists()
    assert send(client, "DELETE", told["id"]).status_code == 204
    assert not OpeningDraft.objects.exists()
    assert send(client, "DELETE", told["id"]).status_code == 404


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"text_column": "body"}, "text: the file has no column named 'body'; it has note, who"),
        ({"preset": "none"}, "preset: must be one of voice-crowd"),
        ({"settings": []}, "settings: must be an object"),
    ],
)
def test_a_draft_that_cannot_be_read_leaves_nothing(client, fields, said):
    typed = fields.pop("settings", {})
    files = {"file": SimpleUploadedFile("tickets.csv", PRIVATE), "settings": json.dumps(typed)}
    answer = client.post("/api/v1/drafts", files | fields)
    assert (answer.status_code, said in answer.json()["detail"]) == (422, True), answer.json()
    assert not OpeningDraft.objects.exists()


def test_a_draft_is_its_owners_alone(client):
    told = draft(client).json()
    other = make_opener()
    assert send(program_of(other), "POST", f"{told['id']}/open").status_code == 404
    assert draft(program_of(make_user())).status_code == 403


def test_a_column_for_each_class_is_the_label_of_an_opened_project(client):
    rows = [
        ("it came late again", 1, 0, 0),
        ("thank you so much", 0, 1, 0),
        ("where is my parcel", 0, 0, 1),
        ("what is this for", 0, 2, 1),
    ]
    table = "text,complaint,praise,question\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    only_flags = "".join(table.splitlines(keepends=True)[:-1])
    files = {
        "file": SimpleUploadedFile("tickets.csv", PRIVATE.replace(b"note", b"text")),
        "public": SimpleUploadedFile("known.csv", only_flags.encode()),
    }
    told = client.post("/api/v1/drafts", files).json()
    assert told["settings"]["classes"].split() == ["complaint", "praise", "question"]
    opened = send(client, "POST", f"{told['id']}/open").json()
    project = Project.objects.get(slug=opened["project"]["slug"])
    public = Dataset.objects.get(role="public_test")
    assert public.mapping["one_hot"] == ["complaint", "praise", "question"]
    datasets.import_dataset(job_id=public.job_id)
    assert [record.label for record in public.records.order_by("pk")] == [0, 1, 2]

    # At the door for more data, with a row that says neither.
    sent = {"file": SimpleUploadedFile("more.csv", table.encode()), "role": "public_test"}
    sent["mapping"] = json.dumps({"one_hot": ["complaint", "praise", "question"]})
    assert client.post(f"/api/v1/projects/{project.slug}/datasets", sent).status_code == 202
    more = Dataset.objects.filter(role="public_test").latest("pk")
    datasets.import_dataset(job_id=more.job_id)
    more.refresh_from_db()
    assert (more.row_count, [row["reason"] for row in more.bad_row_report]) == (3, ["is neither 0 nor 1"])
    sent["file"] = SimpleUploadedFile("more.csv", table.encode())
    sent["mapping"] = json.dumps({"one_hot": ["complaint", "none"]})
    refused = client.post(f"/api/v1/projects/{project.slug}/datasets", sent)
    assert (refused.status_code, "no column named 'none'" in refused.json()["detail"]) == (422, True), refused.json()
