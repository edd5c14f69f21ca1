"""Uploads are stored whole or not at all, bad rows are named without their content, and the file is forgotten."""

import gzip
import io
import json
import logging
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.db import connection
from django.db.models.functions import Now
from PIL import Image

from annotation.data.services import datasets, records
from annotation.data.services.pseudonyms import site_pseudonyms
from annotation.errors import InvalidUpload
from annotation.models import Dataset, Job, Record
from annotation.work.services import attempts, jobs
from dpal.reading import rows
from dpal_site.embedded import host
from tests.factories import make_project, make_user, receive_upload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage")]


def receive(data, project=None, name="rows.csv", **options):
    return receive_upload(
        project=project or make_project(), file=ContentFile(data), name=name, uploaded_by=make_user(), **options
    )


def imported(data, project=None, **options):
    dataset = receive(data, project, **options)
    datasets.import_dataset(job_id=dataset.job_id)
    return Dataset.objects.select_related("job").get(pk=dataset.pk)


def rows_of(dataset, *fields):
    return list(dataset.records.order_by("row_number").values_list("row_number", *fields))


def kept_files():
    found = []
    folders = ["datasets"]
    while folders:
        folder = folders.pop()
        if not default_storage.exists(folder):
            continue
        inner, files = default_storage.listdir(folder)
        folders += [f"{folder}/{name}" for name in inner]
        found += [f"{folder}/{name}" for name in files]
    return found


# --- receiving


def test_an_upload_is_kept_and_its_job_is_sent(sent_tasks):
    dataset = receive(b"text\na\n", name="my rows.csv")
    assert sent_tasks == ["annotation.tasks.import_dataset_task"]
    assert (dataset.state, dataset.name, dataset.job.state) == ("receiving", "my rows.csv", "waiting")
    assert Job.objects.get().sent_at is not None
    assert kept_files() == [dataset.upload.name]
    assert dataset.upload.name.startswith(f"datasets/{dataset.project_id}/")


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (b"", {}, "file: is empty"),
        (b"words\na\n", {}, "text: the file has no column named 'text'"),
        (b"text\na\n", {"mapping": {"text": "body"}}, "text: the file has no column named 'body'"),
        (b"text\na\n", {"mapping": {"txet": "body"}}, "mapping: knows no txet"),
        (b"text\na\n", {"mapping": {"text": 5}}, "text: must be a name"),
        (b"text\na\n", {"mapping": {"delimiter": "ab"}}, "delimiter: must be one character"),
        (b"text\na\n", {"mapping": {"has_header": "no"}}, "has_header: must be true or false"),
        (b"text\na\n", {"mapping": {"columns": "text"}}, "columns: must be a list"),
        (b"text\na\n", {"role": "private"}, "role: must be one of"),
        (b"text\na\n", {"bad_rows": "guess"}, "bad_rows: must be one of"),
        (b"text\na\n", {"role": "public_test"}, "label: the file has no column named 'label'"),
        (b"%PDF-1.7\n", {}, "must be CSV"),
    ],
)
def test_what_cannot_be_read_is_refused_at_once_and_not_kept(data, options, message, sent_tasks):
    with pytest.raises(InvalidUpload, match=message):
        receive(data, **options)
    assert not Dataset.objects.exists()
    assert not Job.objects.exists()
    assert kept_files() == []
    assert sent_tasks == []


def test_a_file_above_the_limit_is_refused(settings):
    settings.UPLOAD_MAX_BYTES = 100
    with pytest.raises(InvalidUpload, match="larger than 100 bytes"):
        receive(b"text\n" + b"a\n" * 100)


def test_a_project_that_protects_contributors_needs_them_named():
    project = make_project(oracle="crowd", privacy_unit="contributor", texts_per_contributor=2)
    with pytest.raises(InvalidUpload, match="contributor: this project protects contributors"):
        receive(b"text,who\na,Ann\n", project)
    dataset = imported(b"text,who\na,Ann\nb,\n", project, mapping={"contributor": "who"})
    assert dataset.bad_row_report == [{"line": 3, "column": "who", "reason": "is empty"}]


def test_nothing_is_kept_when_the_rows_cannot_be_written(monkeypatch):
    def fail(**fields):
        raise RuntimeError("no database")

    monkeypatch.setattr(Dataset.objects, "create", fail)
    with pytest.raises(RuntimeError):
        receive(b"text\na\n")
    assert kept_files() == []
    assert not Job.objects.exists()


# --- importing


def test_rows_are_stored_in_order_and_the_file_is_forgotten(sent_tasks):
    dataset = imported(b'id,text\n1,first\n2,"two\nlines"\n', mapping={"id": "id"})
    assert rows_of(dataset, "text", "payload", "contributor", "label") == [
        (0, "first", None, None, None),
        (1, "two\nlines", None, None, None),
    ]
    assert (dataset.state, dataset.row_count, dataset.bad_row_count) == ("ready", 2, 0)
    assert (dataset.job.state, dataset.job.message) == ("done", "2 rows stored")
    assert dataset.job.progress_done == dataset.job.progress_total > 0
    assert dataset.upload.name == ""
    assert kept_files() == []
    assert sent_tasks[-1] == "learner.tasks.advance_project_task"


def test_contributors_are_stored_as_keyed_hashes_only(settings):
    dataset = imported(b"text,who\na,Ann\nb, Ann \nc,Bob\nd,\n", mapping={"contributor": "who"})
    ann, again, bob, nobody = [bytes(who) if who else None for _, who in rows_of(dataset, "contributor")]
    assert ann == again != bob
    assert len(ann) == len(bob) == 16
    assert nobody is None
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM annotation_record r WHERE r::text LIKE '%Ann%' OR r::text LIKE '%Bob%'")
        assert cursor.fetchone() == (0,)
    settings.PSEUDONYM_KEY = "another"
    assert site_pseudonyms().of("Ann") != ann


def test_cells_of_every_kind_arrive_as_they_were(monkeypatch):
    """What is encoded a batch at a time is what the database hands back, also where a batch goes out in parts."""
    monkeypatch.setattr(records, "MAXIMUM_ROWS", 3)
    texts = ["a", "\u00fcn\u00ef \U0001f600", 'quote " and \\ and \t', "x" * 20_000, "two\nlines", " kept "]
    rows = [
        {"text": text, "who": name}
        for text, name in zip(texts, ["Ann", None, "", "Bob", "Z\u00eb", "Ann"], strict=True)
    ]
    data = "\n".join(map(json.dumps, rows)).encode()
    pool = imported(data, name="rows.jsonl", mapping={"contributor": "who"})
    assert [text for _, text in rows_of(pool, "text")] == texts
    pseudonyms = site_pseudonyms()
    assert [who and bytes(who) for _, who in rows_of(pool, "contributor")] == [
        name and pseudonyms.of(name) for name in ("Ann", None, None, "Bob", "Z\u00eb", "Ann")
    ]
    lines = [
        {"age": age, "job": "cook", "label": label} for age, label in zip((1, 2.5, -3e9 - 0.5, 0), "abab", strict=True)
    ]
    project = make_project(data_kind="table", columns=COLUMNS, classes=["a", "b"])
    table = imported("\n".join(map(json.dumps, lines)).encode(), project, name="t.jsonl", role="public_test")
    assert rows_of(table, "payload", "label") == [
        (number, {"age": line["age"], "job": "cook"}, "ab".index(line["label"])) for number, line in enumerate(lines)
    ]


def test_a_pools_labels_are_never_stored_and_a_test_sets_are():
    data = b"text,y\na,music\nb,opera\n"
    pool = imported(data, mapping={"label": "y"})
    assert rows_of(pool, "label") == [(0, None), (1, None)]
    test = imported(data, role="public_test", mapping={"label": "y"})
    assert rows_of(test, "text", "label") == [(0, "a", 1)]
    assert test.bad_row_report == [{"line": 3, "column": "y", "reason": "is not one of the project's classes"}]


def test_bad_rows_are_counted_all_kept_to_a_limit_and_never_quoted(monkeypatch, caplog):
    monkeypatch.setattr(rows, "BAD_ROWS_KEPT", 3)
    caplog.set_level(logging.DEBUG)
    data = b"text,n\ngood,1\n" + b"secret diary\n" * 10 + b"secret\x00diary,2\n"
    dataset = imported(data)
    assert (dataset.row_count, dataset.bad_row_count) == (1, 11)
    assert [bad["line"] for bad in dataset.bad_row_report] == [3, 4, 5]
    assert dataset.job.message == "1 row stored, 11 bad rows left out"
    assert "secret" not in str(dataset.bad_row_report) + caplog.text


def test_all_or_nothing_stores_nothing_and_says_where():
    dataset = imported(b"text,n\na,1\nb\n,3\n", bad_rows="refuse_all")
    assert not Record.objects.exists()
    assert (dataset.state, dataset.row_count, dataset.bad_row_count) == ("refused", 0, 2)
    assert (dataset.job.state, dataset.job.error) == (
        "failed",
        "Nothing was stored: 2 bad rows; the first is line 3: has 1 field where the header names 2.",
    )
    assert [bad["line"] for bad in dataset.bad_row_report] == [3, 4]
    assert kept_files() == []


def test_a_file_without_a_good_row_is_refused():
    dataset = imported(b"text,n\n,1\n")
    assert (dataset.state, dataset.job.state) == ("refused", "failed")
    assert dataset.job.error == "Nothing was stored: 1 bad row; it is line 2, column text: is empty."
    assert imported(b"text\n").job.error == "Nothing was stored: the file holds none."


def test_a_file_that_turns_out_damaged_leaves_nothing():
    data = gzip.compress(
        b"text\n" + bytes(np.random.default_rng(7).integers(97, 122, 3_000_000, np.uint8)).replace(b"m", b"\n")
    )
    dataset = imported(data[:-500_000], name="rows.csv.gz")
    assert (dataset.state, dataset.job.error) == ("refused", "file: the gzip archive is damaged or cut off")
    assert not Record.objects.exists()


def test_importing_twice_stores_once():
    dataset = receive(b"text\na\nb\n")
    for _ in range(3):
        datasets.import_dataset(job_id=dataset.job_id)
    assert Record.objects.count() == 2


def test_an_attempt_that_breaks_leaves_nothing_and_the_next_one_starts_afresh(monkeypatch):
    dataset = receive(b"text\na\nb\n")
    with monkeypatch.context() as patch:
        patch.setattr(datasets, "_finish", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            datasets.import_dataset(job_id=dataset.job_id)
    assert not Record.objects.exists()
    datasets.import_dataset(job_id=dataset.job_id)
    assert not Record.objects.exists()  # the lease still runs
    Job.objects.update(leased_until=Now() - timedelta(minutes=10))
    datasets.import_dataset(job_id=dataset.job_id)
    assert [row for _, row in rows_of(dataset, "text")] == ["a", "b"]


def test_a_worker_that_was_taken_over_stores_nothing(monkeypatch, caplog):
    dataset = receive(b"text\na\n")
    finish = datasets._finish

    def lose_the_row(*args):
        take_over(dataset.job_id)
        finish(*args)

    monkeypatch.setattr(datasets, "_finish", lose_the_row)
    datasets.import_dataset(job_id=dataset.job_id)
    assert "taken over" in caplog.text
    assert not Record.objects.exists()
    assert Dataset.objects.get().state == "receiving"


def take_over(job_id):

    def steal():
        Job.objects.filter(pk=job_id).update(attempt=2)
        connection.close()

    thread = threading.Thread(target=steal)
    thread.start()
    thread.join()


def test_what_stops_every_worker_is_given_up():
    dataset = receive(b"text\na\n")
    Job.objects.update(attempt=datasets.MAXIMUM_ATTEMPTS)
    datasets.import_dataset(job_id=dataset.job_id)
    assert Job.objects.get().state == "failed"
    assert not Record.objects.exists()


def test_a_file_left_by_a_killed_worker_is_forgotten_later(monkeypatch):
    dataset = receive(b"text\na\n")
    with monkeypatch.context() as patch:
        patch.setattr(datasets, "forget_upload", lambda **_: None)
        datasets.import_dataset(job_id=dataset.job_id)
    assert len(kept_files()) == 1
    waiting = receive(b"text\nb\n")
    assert datasets.forget_read_uploads() == 1
    assert kept_files() == [waiting.upload.name]


def test_progress_is_seen_from_outside_while_the_rows_are_not(settings, monkeypatch):
    settings.WORK_LEASE_SECONDS = 0.15
    dataset = receive(b"text\n" + b"some words in a row\n" * 200_000)
    seen = []

    def look(rows, done, total):
        def from_outside():
            try:
                return Record.objects.count(), Job.objects.get().progress_done
            finally:
                connection.close()

        with ThreadPoolExecutor(1) as pool:
            assert host.wait_until(lambda: pool.submit(from_outside).result() == (0, done), 60)
        seen.append(done / total)

    datasets.import_dataset(job_id=dataset.job_id, on_progress=look)
    assert 0 < max(seen) <= 1
    assert Record.objects.count() == 200_000


# --- tables and images

COLUMNS = [{"name": "age", "low": 0, "high": 100}, {"name": "job", "categories": ["cook", "clerk"]}]


def test_a_table_keeps_declared_columns_and_nothing_else():
    project = make_project(data_kind="table", columns=COLUMNS)
    dataset = imported(b"job,age,diary\ncook,30.5,secret\nking,1,x\n", project)
    assert rows_of(dataset, "payload", "text") == [(0, {"age": 30.5, "job": "cook"}, None)]
    assert dataset.bad_row_report == [{"line": 3, "column": "job", "reason": "is not a declared category"}]


def test_images_end_in_one_pixel_file_in_the_order_of_the_rows():
    project = make_project(data_kind="image", image_height=4, image_width=5)
    images = np.random.default_rng(3).integers(0, 256, (40, 4, 5), dtype=np.uint8)
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for number, image in enumerate(images):
            data = io.BytesIO()
            Image.fromarray(image).save(data, "PNG")
            archive.writestr(f"{number}.png", data.getvalue() if number != 7 else b"no image")
    dataset = imported(sink.getvalue(), project, name="images.zip")
    assert (dataset.row_count, dataset.bad_row_count) == (39, 1)
    stored = np.load(dataset.pixels.path, mmap_mode="r")
    assert (stored.dtype, stored.tolist()) == (np.uint8, np.delete(images, 7, axis=0).tolist())
    assert kept_files() == [dataset.pixels.name]
    assert rows_of(dataset, "text", "payload")[-1] == (38, None, None)


def test_images_as_pixel_columns_of_a_parquet_file():
    project = make_project(data_kind="image", image_height=2, image_width=2)
    sink = io.BytesIO()
    pq.write_table(
        pa.table({f"pixel_{i}": [i, 10 * i, 300] for i in range(4)} | {"label": ["sport", "music", "music"]}), sink
    )
    dataset = imported(sink.getvalue(), project, name="images.parquet", role="public_test")
    assert np.load(dataset.pixels.path).tolist() == [[[0, 1], [2, 3]], [[0, 10], [20, 30]]]
    assert rows_of(dataset, "label") == [(0, 0), (1, 1)]
    assert dataset.bad_row_report[0]["line"] == 3


def test_pixel_files_of_killed_attempts_are_removed():
    project = make_project(data_kind="image", image_height=1, image_width=1)
    dataset = receive(b"pixel_0\n7\n", project)
    folder = dataset.upload.name.rpartition("/")[0]
    default_storage.save(f"{folder}/pixels-1.npy", ContentFile(b"half"))
    Job.objects.update(state="running", attempt=1, leased_until=Now() - timedelta(minutes=10))
    datasets.import_dataset(job_id=dataset.job_id)
    dataset.refresh_from_db()
    assert kept_files() == [dataset.pixels.name] == [f"{folder}/pixels-2.npy"]


# --- jobs


def test_jobs_that_nobody_finishes_are_sent_again(sent_tasks, settings, broker):
    project, settings.HEAVY_SHARE = make_project(), 9
    long_ago = Now() - timedelta(seconds=settings.WORK_LEASE_SECONDS + 1)

    def job(**fields):
        made = Job.objects.create(project=project, kind=fields.pop("kind", "import"))
        Job.objects.filter(pk=made.pk).update(**fields)
        return made

    again = [
        job(created_at=long_ago),
        job(sent_at=long_ago),
        job(sent_at=long_ago, state="running", leased_until=long_ago, attempt=1),
        job(),
    ]
    job(sent_at=Now())
    job(sent_at=long_ago, state="running", leased_until=Now() + timedelta(minutes=5), attempt=1)
    job(sent_at=long_ago, state="done", finished_at=Now())
    job(created_at=long_ago, kind="some other work")
    assert jobs.resend_stalled_work() == len(sent_tasks) == len(again)
    assert jobs.resend_stalled_work() == 0


def test_a_job_whose_sending_failed_is_sent_later(monkeypatch, settings, sent_tasks, broker):
    def away(*args, **kwargs):
        raise ConnectionError("the broker is away")

    with monkeypatch.context() as patch:
        patch.setattr("celery.app.base.Celery.send_task", away)
        dataset = receive(b"text\na\n")
    assert Job.objects.get().sent_at is None
    Job.objects.update(created_at=Now() - timedelta(seconds=settings.WORK_LEASE_SECONDS + 1))
    assert jobs.resend_stalled_work() == 1
    assert sent_tasks == ["annotation.tasks.import_dataset_task"]
    assert dataset.state == "receiving"


# --- the command


def test_the_command_imports_here_and_now(tmp_path, capsys, sent_tasks):
    project = make_project(slug="sms", classes=["ham", "spam"])
    file = tmp_path / "SMSSpamCollection"
    file.write_bytes(b'ham\tHe said "hi\nspam\t"Win"\nham\t\n')
    call_command(
        "import_dataset", file, project="sms", no_header=True, columns="label,text", delimiter="\\t", quoting=False
    )
    shown = capsys.readouterr()
    assert "2 rows stored, 1 bad row left out" in shown.out
    assert "100%" in shown.out
    assert "line 3 text: is empty" in shown.err
    assert [text for _, text in rows_of(project.datasets.get(), "text")] == ['He said "hi', '"Win"']
    assert "annotation.tasks.import_dataset_task" not in sent_tasks
    file.write_bytes(b'ham\tShe said "hi\nspam\t"Won"\n')
    call_command(
        "import_dataset",
        file,
        project="sms",
        role="public_test",
        no_header=True,
        text_column="2",
        label_column="1",
        delimiter="\t",
        quoting=False,
    )
    assert rows_of(project.datasets.last(), "label") == [(0, 0), (1, 1)]


def test_work_is_not_taken_from_somebody_who_holds_it():
    dataset = receive(b"text\na\n")
    assert attempts.take_work(row=Job.objects.get())
    datasets.import_dataset(job_id=dataset.job_id)
    assert not Record.objects.exists()
