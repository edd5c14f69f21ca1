import csv
import hashlib
import io
import json
import resource
import sys
from datetime import timedelta

import pyarrow
import pytest
from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models.functions import Now
from django.urls import reverse
from pyarrow import parquet

from annotation.data.services import datasets, drafts
from annotation.models import Dataset, Project, Role
from annotation.models.imports import UploadDraft
from annotation.work.services.tokens import Scope
from privacy.ledger import populations
from tests.clients import browser_of, program_of
from tests.factories import add_members, bring_file, make_project, make_user, open_population
from tests.workbooks import sheet, workbook

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage")]
TABLE = [{"name": "age", "low": 0, "high": 100}, {"name": "job", "categories": ["cook", "clerk"]}]


def managed(manager: User, **fields: object) -> Project:
    project = make_project(owner=manager, **fields)
    add_members(project, manager, role=Role.MANAGER)
    return project


def look(manager: User, project: Project, data: bytes, name: str = "rows.csv", **fields: object) -> str:
    values = {"role": "pool", "bad_rows": "keep_good", "has_header": "on", "look": "1", **fields}
    file = SimpleUploadedFile(name, data)
    response = browser_of(manager).post(reverse("annotation:data", args=[project.slug]), {**values, "file": file})
    assert response.status_code == 302, response.context["form"].errors
    return response["Location"]


def test_a_small_file_that_unpacks_to_a_large_cell_is_not_shown(manager: User) -> None:
    """One cell of 600 MB in 19 kB took the web process to 4.3 GB; the page says what is wrong with it instead."""
    project = managed(manager)
    sink = io.BytesIO()
    parquet.write_table(pyarrow.table({"text": ["a" * 100_000_000]}), sink, compression="zstd", use_dictionary=False)
    assert len(sink.getvalue()) < 30_000
    address = look(manager, project, sink.getvalue(), "rows.parquet")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    response = browser_of(manager).get(address)
    assert "a cell longer than 8,388,608 bytes" in response.context["problem"]
    # In KiB, and those of bytes where the system counts so.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024 * (
        1024 if sys.platform == "darwin" else 1
    )


WRITTEN = {"has_header": "on", "quoting": "on", "delimiter": ","}


def test_a_look_shows_good_and_bad_cells_and_stores_nothing(manager: User) -> None:
    project = managed(manager)
    address = look(manager, project, b"id,Message\n1,hello\n2,\n3\n")
    response = browser_of(manager).get(address)
    page = response.content.decode()
    assert [row.is_bad for row in response.context["preview"].rows] == [False, True, True]
    assert "2 of these 3 rows are bad." in page
    assert "is empty" in page
    assert "has 1 field where the header names 2" in page
    assert response.context["passed_over"] == ["id"]
    assert "Columns not used: id" in " ".join(response.content.decode().split())
    assert response.headers["Cache-Control"].count("no-store") == 1
    assert not Dataset.objects.exists()


def test_what_was_looked_at_is_uploaded_once_as_it_was_mapped(manager: User) -> None:
    project = managed(manager)
    address = look(manager, project, b"body,words\nx,hello\n")
    client = browser_of(manager)
    assert client.post(address, {**WRITTEN, "text": "nowhere", "upload": "1"}).status_code == 422
    assert client.post(address, {**WRITTEN, "text": "words"})["Location"] == address
    assert "hello" in client.get(address).content.decode()
    (kept,) = UploadDraft.objects.all()
    assert client.post(address, {**WRITTEN, "text": "words", "upload": "1"}).status_code == 302
    dataset = Dataset.objects.get()
    assert (dataset.name, dataset.uploaded_by) == ("rows.csv", manager)
    datasets.import_dataset(job_id=dataset.job_id)
    assert list(dataset.records.values_list("text", flat=True)) == ["hello"]
    assert not default_storage.exists(kept.upload.name)
    assert client.post(address, {**WRITTEN, "text": "words", "upload": "1"}).status_code == 404
    assert Dataset.objects.count() == 1


def test_another_way_of_reading_brings_other_columns(manager: User) -> None:
    project = managed(manager)
    address = look(manager, project, b"text;b,c\nhello;x,y\n")
    client = browser_of(manager)
    assert client.get(address).context["form"]["delimiter"].initial == ","
    client.post(address, {"has_header": "on", "quoting": "on", "delimiter": ";", "text": "text;b"})
    assert UploadDraft.objects.get().mapping["text"] == "text"
    client.post(address, {"quoting": "on", "delimiter": ";", "text": "text"})
    response = client.get(address)
    assert [value for value, _ in response.context["form"].fields["text"].choices] == ["", "1", "2"]
    client.post(address, {"quoting": "on", "delimiter": ";", "text": "1", "upload": "1"})
    dataset = Dataset.objects.get()
    datasets.import_dataset(job_id=dataset.job_id)
    assert list(dataset.records.order_by("row_number").values_list("text", flat=True)) == ["text", "hello"]


def test_an_encoding_is_chosen_on_the_page_and_never_guessed(manager: User) -> None:
    project = managed(manager)
    data = "text\nGrüße\n".encode("windows-1252")
    address = look(manager, project, data)
    client = browser_of(manager)
    page = client.get(address)
    assert page.context["preview"].bad_count == 1
    assert "choose another, or save as UTF-8" in page.content.decode()
    client.post(address, {**WRITTEN, "text": "text", "encoding": "windows-1252"})
    assert "Grüße" in client.get(address).content.decode()
    refused = client.post(address, {**WRITTEN, "text": "text", "encoding": "utf-16"})
    assert refused.status_code == 422
    assert "choose utf-16-le or utf-16-be" in refused.content.decode()
    client.post(address, {**WRITTEN, "text": "text", "encoding": "windows-1252", "upload": "1"})
    dataset = Dataset.objects.get()
    assert dataset.mapping["encoding"] == "windows-1252"
    datasets.import_dataset(job_id=dataset.job_id)
    assert list(dataset.records.values_list("text", flat=True)) == ["Grüße"]
    back = look(manager, project, "text\nnaïve\n".encode("utf-16-le"), encoding="utf-16-le")
    assert "naïve" in client.get(back).content.decode()


def test_a_sheet_of_a_workbook_is_chosen_and_read(manager: User) -> None:
    project = managed(manager)
    book = workbook({"One": sheet([["text"], ["first"]]), "Two": sheet([["words"], ["second"], [None], ["third"]])})
    address = look(manager, project, book, "rows.xlsx")
    client = browser_of(manager)
    page = client.get(address)
    assert [value for value, _ in page.context["form"].fields["sheet"].choices] == ["One", "Two"]
    assert "first" in page.content.decode()
    client.post(address, {"has_header": "on", "sheet": "Two", "text": "text"})
    client.post(address, {"has_header": "on", "sheet": "Two", "text": "words", "upload": "1"})
    dataset = Dataset.objects.get()
    assert dataset.mapping["sheet"] == "Two"
    datasets.import_dataset(job_id=dataset.job_id)
    assert list(dataset.records.order_by("row_number").values_list("text", flat=True)) == ["second", "third"]


def test_the_rest_interface_takes_a_sheet_and_an_encoding(manager: User) -> None:
    project = managed(manager)
    client = program_of(manager, Scope.DATASETS_WRITE)

    def send(data: bytes, **mapping: str) -> int:
        file = SimpleUploadedFile("a", data)
        sent = {"file": file, "mapping": json.dumps(mapping)}
        return int(client.post(f"/api/v1/projects/{project.slug}/datasets", sent).status_code)

    assert send("text\nGrüße\n".encode("iso-8859-1"), encoding="iso-8859-1") == 202
    assert send(workbook({"One": sheet([["a"]]), "Two": sheet([["text"], ["b"]])}), sheet="Two") == 202
    for refused in (
        {"encoding": "koi8-x"},
        {"sheet": "Two"},
        {"encoding": "utf-16"},
        {"encoding": ["utf-8"]},
        {"id": "\ud800"},
        {"metadata": ["a\0b"]},
    ):
        assert send(b"text\na\n", **refused) == 422, refused


def test_declared_columns_are_found_and_may_be_called_otherwise(manager: User) -> None:
    project = managed(manager, data_kind="table", columns=TABLE)
    address = look(manager, project, b"AGE,occupation,label\n30,cook,x\n200,king,x\n")
    client = browser_of(manager)
    assert client.get(address).context["form"]["feature_0"].initial == "AGE"
    assert client.post(address, {**WRITTEN, "feature_0": "AGE"}).status_code == 422
    client.post(address, {**WRITTEN, "feature_0": "AGE", "feature_1": "occupation", "upload": "1"})
    dataset = Dataset.objects.get()
    datasets.import_dataset(job_id=dataset.job_id)
    assert list(dataset.records.values_list("payload", flat=True)) == [{"age": 30, "job": "cook"}]
    dataset.refresh_from_db()
    assert dataset.bad_row_report == [{"line": 3, "column": "occupation", "reason": "is not a declared category"}]


def test_labels_are_asked_for_where_they_are_read_and_nowhere_else(manager: User) -> None:
    project = managed(manager)
    data = b"text,user,topic\nhello,ann,sport\n"
    pool = browser_of(manager).get(look(manager, project, data)).context["form"].fields
    test = browser_of(manager).get(look(manager, project, data, role="public_test")).context["form"].fields
    assert ("contributor" in pool, "label" in pool) == (True, False)
    assert ("contributor" in test, "label" in test) == (False, True)
    # A person's name is taken only where somebody says so, or where people are what is protected.
    assert UploadDraft.objects.earliest("created_at").mapping.get("contributor") is None
    crowd = managed(manager, oracle="crowd", privacy_unit="contributor", texts_per_contributor=2, normalizer="L1")
    look(manager, crowd, data)
    assert UploadDraft.objects.get(project=crowd).mapping["contributor"] == "user"


def test_a_file_may_be_thrown_away_and_is_forgotten_after_a_day(manager: User) -> None:
    project = managed(manager)
    address = look(manager, project, b"text\na\n")
    (thrown,) = UploadDraft.objects.all()
    assert browser_of(manager).post(address, {"discard": "1"}).status_code == 302
    assert (UploadDraft.objects.exists(), default_storage.exists(thrown.upload.name)) == (False, False)
    look(manager, project, b"text\na\n")
    look(manager, project, b"text\nb\n")
    old, new = UploadDraft.objects.order_by("created_at")
    UploadDraft.objects.filter(pk=old.pk).update(created_at=Now() - timedelta(hours=drafts.KEPT_HOURS + 1))
    assert drafts.forget_old_drafts() == 1
    assert list(UploadDraft.objects.all()) == [new]
    assert [default_storage.exists(draft.upload.name) for draft in (old, new)] == [False, True]


def test_a_look_is_nobody_elses(manager: User) -> None:
    project = managed(manager)
    address = look(manager, project, b"text\na\n")
    other = make_user()
    add_members(project, other, role=Role.MANAGER)
    assert browser_of(other).get(address).status_code == 404
    assert browser_of(other).post(address, {"discard": "1"}).status_code == 404
    elsewhere = managed(manager)
    moved = reverse("annotation:preview", args=[elsewhere.slug, UploadDraft.objects.get().pk])
    assert browser_of(manager).get(moved).status_code == 404


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7\n", b"PAR1 broken"])
def test_what_no_mapping_could_mend_is_refused_at_once(manager: User, data: bytes) -> None:
    project = managed(manager)
    fields = {"role": "pool", "bad_rows": "keep_good", "look": "1", "file": SimpleUploadedFile("a.csv", data)}
    response = browser_of(manager).post(reverse("annotation:data", args=[project.slug]), fields)
    assert response.status_code == 422
    assert not UploadDraft.objects.exists()


def test_without_a_look_the_columns_are_guessed(manager: User) -> None:
    project = managed(manager)
    fields = {"role": "pool", "bad_rows": "keep_good", "has_header": "on"}
    file = SimpleUploadedFile("a.csv", b"id;Utterance\n1;hello\n")
    assert (
        browser_of(manager)
        .post(reverse("annotation:data", args=[project.slug]), {**fields, "file": file})
        .has_header("Location")
    )
    assert Dataset.objects.get().mapping == {"text": "Utterance", "has_header": True, "delimiter": ";"}


TASKS = [
    {
        "data": {"body": "a"},
        "annotations": [
            {
                "completed_by": {"id": person, "email": f"{person}@example.org"},
                "result": [{"from_name": "topic", "type": "choices", "value": {"choices": [choice]}}],
            }
            for person, choice in ((1, "sport"), (2, "music"))
        ],
    },
    {"data": {"body": "b"}, "annotations": []},
]


def test_a_label_studio_project_is_looked_at_and_one_persons_answers_are_taken(manager: User) -> None:
    project = managed(manager)
    address = look(manager, project, json.dumps(TASKS).encode(), "export.json", role="public_test")
    client = browser_of(manager)
    response = client.get(address)
    form = response.context["form"]
    assert (form["text"].initial, form["label"].initial) == ("body", "topic")
    assert [name for name, _ in form.fields["annotator"].choices] == ["", "1", "1@example.org", "2", "2@example.org"]
    assert [row.reason for row in response.context["preview"].rows] == [
        "has no majority among its answers",
        "has no answer that counts",
    ]
    chosen = {"text": "body", "label": "topic", "answers": "majority", "annotator": "2@example.org"}
    client.post(address, {**chosen, "upload": "1"})
    dataset = Dataset.objects.get()
    datasets.import_dataset(job_id=dataset.job_id)
    assert list(dataset.records.values_list("text", "label")) == [("a", 1)]
    assert (
        "2@example.org" in client.get(reverse("annotation:dataset", args=[project.slug, dataset.pk])).content.decode()
    )
    pool = client.get(look(manager, project, json.dumps(TASKS).encode(), "export.json")).context["form"].fields
    assert {"label", "answers", "annotator"}.isdisjoint(pool)


def test_a_label_studio_project_comes_by_the_rest_interface(manager: User) -> None:
    project = managed(manager)
    client = program_of(manager, Scope.DATASETS_WRITE)

    def send(**fields: object) -> int:
        file = SimpleUploadedFile("export.json", json.dumps(TASKS).encode())
        address = f"/api/v1/projects/{project.slug}/datasets"
        return client.post(address, {"file": file, "text_column": "body", **fields}).status_code

    assert send(mapping='{"annotator": "1"}') == 422  # a pool's answers have no proof
    assert send(mapping='{"annotator": "1"}', role="public_test") == 202
    dataset = Dataset.objects.get()
    datasets.import_dataset(job_id=dataset.job_id)
    assert list(dataset.records.values_list("text", "label")) == [("a", 0)]
    dataset.refresh_from_db()
    assert dataset.bad_row_report == [{"line": 2, "column": "topic", "reason": "has no answer that counts"}]


def test_bad_rows_are_a_file_no_spreadsheet_runs(manager: User) -> None:
    project = managed(manager)
    dataset = bring_file(project, b"=text\nhello\nnul\x00\n", name="a.csv", mapping={"text": "=text"})
    datasets.import_dataset(job_id=dataset.job_id)
    client = browser_of(manager)
    page = client.get(reverse("annotation:dataset", args=[project.slug, dataset.pk])).content.decode()
    address = reverse("annotation:bad_rows", args=[project.slug, dataset.pk])
    assert address in page
    response = client.get(address)
    assert response.streaming
    assert "attachment" in response["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(response.getvalue().decode())))
    assert rows == [{"line": "3", "column": "'=text", "reason": "holds a NUL character"}]


def test_the_rest_interface_takes_the_whole_mapping(manager: User) -> None:
    project = managed(manager, data_kind="table", columns=TABLE)
    client = program_of(manager, Scope.DATASETS_WRITE)
    address = f"/api/v1/projects/{project.slug}/datasets"

    def send(mapping: str) -> object:
        file = SimpleUploadedFile("a.csv", b"Age;job\n30;cook\n")
        return client.post(address, {"file": file, "mapping": mapping})

    response = send(json.dumps({"features": {"age": "Age"}, "delimiter": ";"}))
    assert response.status_code == 202
    dataset = Dataset.objects.get()
    datasets.import_dataset(job_id=dataset.job_id)
    assert dataset.records.get().payload == {"age": 30, "job": "cook"}
    for wrong in ("[1]", "{", '{"features": {"size": "Age"}}', '{"features": 5}', '{"unknown": 1}', "[" * 5000):
        refused = send(wrong)
        assert refused.status_code == 422, wrong
    assert Dataset.objects.count() == 1


def test_a_file_that_comes_twice_is_marked_and_other_bytes_are_not(manager: User) -> None:
    project, client = managed(manager), browser_of(manager)
    said = "Same file as an earlier upload"
    for data, marked in ((b"text\nhello\n", 0), (b"text\nother\n", 0), (b"text\nhello\n", 1)):
        address = look(manager, project, data)
        assert client.post(address, {**WRITTEN, "text": "text", "upload": "1"}).status_code == 302
        datasets.import_dataset(job_id=Dataset.objects.latest("pk").job_id)
        page = client.get(reverse("annotation:data", args=[project.slug])).content.decode()
        assert page.count(said) == marked
    # The digest is keyed, so a copy of the database does not tell which file it was.
    assert hashlib.sha256(b"text\nhello\n").hexdigest() not in Dataset.objects.values_list("upload_digest", flat=True)


def test_a_pool_in_another_project_of_the_manager_is_told_until_they_share_a_budget(manager: User) -> None:
    other = make_user()
    here, there = managed(manager, name="Here"), managed(manager, name="There")
    for owner, project in ((manager, here), (manager, there), (other, managed(other, name="Foreign"))):
        address = look(owner, project, b"text\nhello\n")
        assert browser_of(owner).post(address, {**WRITTEN, "text": "text", "upload": "1"}).status_code == 302

    def told(project: Project) -> str:
        page = browser_of(manager).get(reverse("annotation:uploads", args=[project.slug])).content.decode()
        return " ".join(page.split())

    assert "Also the pool of There: these people lose the sum of both budgets." in told(here)
    assert "Also the pool of Here:" in told(there)
    assert "Foreign" not in told(here) + told(there)
    population = open_population()
    accounts = [here.pool_account, there.pool_account]
    populations.join_population(population=population, accounts=accounts, records_per_person=1, actor=str(manager))
    assert "Also the pool of" not in told(here) + told(there)
