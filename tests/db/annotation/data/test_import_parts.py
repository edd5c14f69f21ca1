import gzip
import io
import json
import random
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.files.base import ContentFile
from django.db import IntegrityError, connection, transaction

from annotation.data.readers import parts as file_parts
from annotation.data.readers.parts import find_cuts
from annotation.data.services import datasets, import_parts, uploads
from annotation.data.services.shared_rows import ComparedRows
from annotation.errors import InvalidUpload
from annotation.gates import services as gates
from annotation.models import Dataset, Job, Record
from annotation.models.imports import ImportPart
from annotation.work.services import attempts, files, jobs
from dpal.reading import rows, sources
from tests.factories import make_project, make_user, receive_upload
from tests.pools import stored_rows

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def sent(monkeypatch):
    names = []
    monkeypatch.setattr("celery.app.base.Celery.send_task", lambda app, name, *args, **kwargs: names.append(name))
    monkeypatch.setattr(
        "celery.canvas.Signature.apply_async", lambda signature, **options: names.append(signature.task)
    )
    return names


@pytest.fixture(autouse=True)
def rows_in_the_database(settings):
    """Where rows go into the database; columns are asked for by name."""
    settings.POOLS_IN_DATABASE = True


@pytest.fixture
def cut_small(monkeypatch):
    monkeypatch.setattr(sources, "CHUNK_BYTES", 256)
    monkeypatch.setattr(sources, "MAXIMUM_LINE_BYTES", 50_000)
    monkeypatch.setattr(import_parts, "PART_BYTES", 1500)


def rows_in(count):
    """Yield texts as people write them: quotes, separators and ends of lines within, and here and there no text."""
    choice = random.Random(3)
    for number in range(count):
        text = f'text {number}, she said "{number % 7}"'
        text += choice.choice(["", "\nand more", "\r\n\r\n", ' \n"quoted",with commas\n', " é" * 5, "\n"])
        yield "" if number % 41 == 40 else text, f"person {number % 13}"


def quoted(cell):
    return '"' + cell.replace('"', '""') + '"'


def as_csv(count=400, end="\r\n"):
    lines = ["text,contributor"]
    for number, (text, person) in enumerate(rows_in(count)):
        lines.append(f"{quoted(text)},{person}" + (",one too many" if number % 97 == 96 else ""))
        if number % 89 == 88:
            lines.append(f'"closed in the middle"of it,{person}')
    return "\ufeff".encode() + end.join(lines).encode() + end.encode()


def as_plain_csv(count=400):
    return b"text,contributor\n" + b"".join(b'text %d says 5" of snow,p%d\n' % (n, n % 7) for n in range(count))


def as_jsonl(count=400):
    lines = []
    for number, (text, person) in enumerate(rows_in(count)):
        lines.append(json.dumps({"text": text, "contributor": person}, ensure_ascii=number % 2 == 0))
        lines += (
            [""] * (number % 5 == 4)
            + ['{"text": 1'] * (number % 61 == 60)
            + ['{"contributor": "x"}'] * (number % 71 == 70)
        )
    return "\n".join(lines).encode()


def as_parquet(count=400):
    texts, people = zip(*rows_in(count), strict=True)
    file = io.BytesIO()
    pq.write_table(pa.table({"text": texts, "contributor": people}), file, row_group_size=37)
    return file.getvalue()


FILES = {
    "quoted.csv": as_csv(),
    "unix.csv": as_csv(end="\n"),
    "plain.csv": as_plain_csv(),
    "rows.jsonl": as_jsonl(),
    "rows.parquet": as_parquet(),
}


def received(name, data, **options):
    project = make_project(oracle="crowd")
    return receive_upload(project=project, file=ContentFile(data), name=name, uploaded_by=make_user(), **options)


def outcome(dataset):
    dataset = Dataset.objects.select_related("job").get(pk=dataset.pk)
    rows = stored_rows(dataset)
    assert not dataset.records.exclude(label=None).exists()
    report = (dataset.state, dataset.row_count, dataset.bad_row_count, dataset.bad_row_report)
    return rows, report, (dataset.job.state, dataset.job.message, dataset.job.error)


def read_whole(monkeypatch, name, data, **options):
    with monkeypatch.context() as patch:
        patch.setattr(import_parts, "PART_BYTES", 2**40)
        dataset = received(name, data, **options)
        datasets.import_dataset(job_id=dataset.job_id)
    return outcome(dataset)


def with_helpers(dataset, helpers):
    def help_along():
        try:
            while not finished.is_set():
                import_parts.help_reading(dataset_id=dataset.pk)
                finished.wait(0.01)
        finally:
            connection.close()

    finished = threading.Event()
    threads = [threading.Thread(target=help_along) for _ in range(helpers)]
    for thread in threads:
        thread.start()
    try:
        datasets.import_dataset(job_id=dataset.job_id)
    finally:
        finished.set()
        for thread in threads:
            thread.join()


@pytest.mark.one_in(6)
@pytest.mark.parametrize("where", ["database", "columns"])
@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("name", FILES)
def test_any_number_of_workers_finds_the_same(monkeypatch, settings, cut_small, sent, name, workers, where):
    if name.endswith("parquet"):
        monkeypatch.setattr(import_parts, "PART_BYTES", 1)
    expected = read_whole(monkeypatch, name, FILES[name])
    settings.POOLS_IN_DATABASE = where == "database"
    dataset = received(name, FILES[name])
    with_helpers(dataset, workers - 1)
    assert outcome(dataset) == expected
    assert len(expected[0]) > 300
    assert sent.count(import_parts.READ_TASK) >= 3
    assert not ImportPart.objects.exists()


def opened(name, data, **options):
    dataset = received(name, data, **options)
    attempts.take_work(row=Job.objects.get(pk=dataset.job_id))
    with dataset.upload.open() as file:
        layout = datasets.mappings.layout_of(dataset.project, dataset.role, dataset.mapping)
        upload = uploads.open_upload(file, name, layout)
        assert import_parts.open_parts(dataset, upload, file, size=file.size)
    return dataset


def reread(dataset):
    Job.objects.filter(pk=dataset.job_id).update(state="waiting", leased_until=None)
    datasets.import_dataset(job_id=dataset.job_id)


def file_names(dataset):
    return sorted(files.names_in(str(dataset.upload.name).rpartition("/")[0]))


@pytest.mark.parametrize("name", ["quoted.csv", "rows.jsonl"])
def test_parts_read_from_the_last_to_the_first_have_their_numbers(monkeypatch, cut_small, name):
    expected = read_whole(monkeypatch, name, FILES[name])
    dataset = opened(name, FILES[name])

    def take_last(dataset_id):
        free = ImportPart.objects.filter(dataset=dataset_id, stored=False).select_related("dataset__project")
        return free.order_by("-number").first()

    with monkeypatch.context() as patch:
        patch.setattr(import_parts, "_take", take_last)
        import_parts.help_reading(dataset_id=dataset.pk)
    assert not ImportPart.objects.filter(stored=False).exists()
    assert Dataset.objects.get(pk=dataset.pk).state == "receiving"
    assert not Record.objects.filter(dataset=dataset).exists()
    reread(dataset)
    assert outcome(dataset) == expected
    assert file_names(dataset) == []


def test_a_part_whose_worker_dies_is_read_again_once(monkeypatch, cut_small):
    expected = read_whole(monkeypatch, "quoted.csv", FILES["quoted.csv"])
    dataset = opened("quoted.csv", FILES["quoted.csv"])
    assert import_parts.read_free_part(dataset_id=dataset.pk)
    kept, real, read = file_names(dataset), import_parts._read, []

    class Killed(BaseException):
        pass

    def die():
        raise Killed

    with pytest.raises(Killed):
        import_parts.read_free_part(dataset_id=dataset.pk, check=die)
    assert file_names(dataset) == kept
    monkeypatch.setattr(
        import_parts, "_read", lambda part, sink, check: read.append(part.number) or real(part, sink, check)
    )
    reread(dataset)
    assert outcome(dataset) == expected
    # What was kept is not read anew: the next attempt goes on behind it.
    assert min(read) == 1
    assert file_names(dataset) == []


def test_a_cut_within_a_field_is_noticed(monkeypatch, cut_small):
    expected = read_whole(monkeypatch, "quoted.csv", FILES["quoted.csv"])
    monkeypatch.setattr(file_parts, "_break_after", lambda upload, file, place: place + after_line(file, place))
    dataset = opened("quoted.csv", FILES["quoted.csv"])
    import_parts.help_reading(dataset_id=dataset.pk)
    assert ImportPart.objects.filter(odd=True).count() == 1
    reread(dataset)
    assert outcome(dataset) == expected


def after_line(file, place):
    file.seek(place)
    return file.read().index(b"\nand more") + 1


REFUSED = {
    "bad rows": (FILES["quoted.csv"], "quoted.csv", {"bad_rows": "refuse_all"}),
    "an open quote": (as_plain_csv() + b'"' + b"never closed\n" * 20_000, "rows.csv", {}),
    "a long line": (as_jsonl() + b"\n" + b"x" * 60_000, "rows.jsonl", {}),
    "a damaged row group": (as_parquet()[:4000] + b"\xff" * 700 + as_parquet()[4700:], "rows.parquet", {}),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("why", REFUSED)
def test_a_refused_file_leaves_no_row_and_the_same_reason(monkeypatch, cut_small, why):
    data, name, options = REFUSED[why]
    expected = read_whole(monkeypatch, name, data, **options)
    if name.endswith("parquet"):
        monkeypatch.setattr(import_parts, "PART_BYTES", 1)
    elif why == "an open quote":
        # Each part is read to the end of what may be a field, which for many small ones is most of this test's time.
        monkeypatch.setattr(import_parts, "PART_BYTES", 20_000)
    dataset = opened(name, data, **options)
    import_parts.help_reading(dataset_id=dataset.pk)
    reread(dataset)
    assert outcome(dataset) == expected
    assert expected[0] == []
    assert expected[1][0] == "refused"
    assert expected[2][2]
    assert not ImportPart.objects.exists()


def test_a_cancelled_import_leaves_no_row_and_can_be_read_again(monkeypatch, cut_small):
    expected = read_whole(monkeypatch, "quoted.csv", FILES["quoted.csv"])
    dataset = opened("quoted.csv", FILES["quoted.csv"])
    assert import_parts.read_free_part(dataset_id=dataset.pk)
    Job.objects.filter(pk=dataset.job_id).update(cancelled_by="somebody")
    assert not import_parts.read_free_part(dataset_id=dataset.pk)
    reread(dataset)
    assert not Record.objects.filter(dataset=dataset).exists()
    assert not ImportPart.objects.exists()
    job = datasets.read_again(dataset=Dataset.objects.get(pk=dataset.pk))
    datasets.import_dataset(job_id=job.pk)
    assert outcome(dataset) == expected


def test_rows_of_parts_are_nothing_to_gate_or_to_ask_before_the_upload_is_ready(cut_small):
    dataset = opened("quoted.csv", FILES["quoted.csv"])
    import_parts.help_reading(dataset_id=dataset.pk)
    assert not Record.objects.filter(dataset=dataset).exists()
    assert gates.start_gate(dataset=dataset) is None
    assert not Job.objects.filter(kind=jobs.GATE).exists()


def test_bad_rows_beyond_those_kept_are_counted(monkeypatch, cut_small):
    monkeypatch.setattr(rows, "BAD_ROWS_KEPT", 5)
    expected = read_whole(monkeypatch, "quoted.csv", FILES["quoted.csv"])
    dataset = received("quoted.csv", FILES["quoted.csv"])
    with_helpers(dataset, 1)
    assert outcome(dataset) == expected
    assert expected[1][2] > 5 == len(expected[1][3])


def test_a_packed_file_and_a_small_one_are_read_in_one_piece(cut_small):
    packed = gzip.compress(FILES["quoted.csv"])
    dataset = received("rows.csv.gz", packed)
    with dataset.upload.open() as file:
        layout = datasets.mappings.layout_of(dataset.project, dataset.role, dataset.mapping)
        upload = uploads.open_upload(file, "rows.csv.gz", layout)
        assert find_cuts(upload, file, size=file.size, part_bytes=100) == [0, len(packed)]


def test_parts_that_are_gone_end_an_attempt_and_no_upload(cut_small):
    dataset = opened("quoted.csv", FILES["quoted.csv"])
    import_parts.help_reading(dataset_id=dataset.pk)
    ImportPart.objects.all().delete()
    with pytest.raises(LookupError):
        import_parts.collected(dataset, ComparedRows(dataset))


def test_a_part_is_stored_only_when_it_was_counted(cut_small):
    dataset = opened("quoted.csv", FILES["quoted.csv"])
    with pytest.raises(IntegrityError, match="annotation_import_part_counted"), transaction.atomic():
        ImportPart.objects.filter(dataset=dataset).update(stored=True)
    with pytest.raises(IntegrityError, match="annotation_import_part_once"), transaction.atomic():
        ImportPart.objects.filter(dataset=dataset).update(number=7)


def test_a_refused_header_is_refused_before_anything_is_cut(cut_small):
    with pytest.raises(InvalidUpload, match="no column"):
        received("rows.csv", FILES["quoted.csv"].replace(b"text,", b"words,"))
