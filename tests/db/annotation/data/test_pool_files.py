"""A crowd's pool lies in storage alone: written whole or not at all, emptied in every byte, its catalogue unbent."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from annotation.budget import services
from annotation.data.services import datasets, pool_files, retention
from annotation.data.services import forgetting as data_forgetting
from annotation.data.services.forgetting import pseudonym_of, request_forgetting
from annotation.data.who_lost_what import who_lost_what
from annotation.gates import services as gates
from annotation.models import Dataset, DatasetState, GateRun, Job, PoolPart, Query, Record
from annotation.projects.services import lifecycle
from learner.rounds.services import closing as deletion
from learner.rounds.services import forgetting
from learner.rounds.services import forgetting as learner_retention
from privacy.errors import UnsoundCombination
from privacy.ledger.entries import broken_rule
from tests.factories import make_account, make_project, make_user, open_population, receive_upload
from tests.owning import as_owner
from tests.pools import digests, emptied_slots, stored_rows

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("reads_here")]
ROWS = [(f"text {number} of person {number % 5}", f"person {number % 5}") for number in range(23)]
ZSTD = b"\x28\xb5\x2f\xfd"


@pytest.fixture(autouse=True)
def small_parts(monkeypatch, own_storage):
    """Have many files where one would do, in a storage of their own; nothing reaches the broker."""
    monkeypatch.setattr("celery.app.base.Celery.send_task", lambda *args, **options: None)
    monkeypatch.setattr("celery.canvas.Signature.apply_async", lambda *args, **options: None)
    monkeypatch.setattr(pool_files, "PART_ROWS", 10)


def crowd(**settings):
    account = make_account(epsilon_limit=10.0, delta_limit=0.5)
    return make_project(oracle="crowd", normalizer="L1", pool_account=account, gate_k=3, gate_epsilon=1.0, **settings)


def upload(project=None, rows=ROWS, **options):
    lines = "".join(f'"{text}",{who}\n' for text, who in rows)
    dataset = receive_upload(
        project=project or crowd(),
        file=ContentFile(f"text,contributor\n{lines}".encode()),
        name="log.csv",
        mapping={"text": "text", "contributor": "contributor"},
        uploaded_by=options.pop("by", None) or make_user(),
        send=False,
        **options,
    )
    datasets.import_dataset(job_id=dataset.job_id)
    dataset.refresh_from_db()
    return dataset


def files_in_storage():
    return sorted(str(path) for path in Path(default_storage.location).rglob("pool-*"))


def forget(project, name):
    job = request_forgetting(project=project, name=name, actor="ada", send=False).job
    forgetting.forget_contributor(job_id=job.pk)
    job.refresh_from_db()
    assert job.state == "done", job.error


def everything_stored():
    for path in Path(default_storage.location).rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            yield content
            place = content.find(ZSTD)
            while place >= 0:
                yield unpacked(content[place:])
                place = content.find(ZSTD, place + 1)
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT t::text FROM "{table}" t')
            yield from (row.encode() for (row,) in cursor.fetchall())


def unpacked(content):
    found = b""
    try:
        with pa.input_stream(pa.BufferReader(content), compression="zstd") as stream:
            while more := stream.read(1):
                found += more
    except OSError:
        pass
    return found


def holds(*needles):
    return [any(each in found or each.hex().encode() in found for found in everything_stored()) for each in needles]


def test_rows_lie_in_files_of_one_size_and_none_in_the_database():
    dataset = upload()
    assert dataset.in_columns
    assert not Record.objects.exists()
    parts = list(PoolPart.objects.order_by("number").values_list("number", "first_row", "row_count", "named"))
    assert parts == [(0, 0, 10, True), (1, 10, 10, True), (2, 20, 3, True)]
    assert [(text, who) for _row, text, who in stored_rows(dataset)] == [(t, pseudonym_of(who)) for t, who in ROWS]
    assert dataset.row_count == len(ROWS)
    assert len(files_in_storage()) == 3


def test_a_refused_upload_leaves_no_file_whole_or_half():
    refused = upload(rows=[*ROWS, ("", "nobody says this")], bad_rows="refuse_all")
    assert (refused.state, PoolPart.objects.count(), files_in_storage()) == ("refused", 0, [])


def test_what_a_killed_attempt_left_is_no_part_of_the_pool_and_is_swept(monkeypatch):
    class Killed(BaseException):
        """Ends a worker before it can clean up."""

    def die(*args):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(pool_files, "note_parts", die)
        patch.setattr(pool_files.PoolWriter, "discard", lambda writer: None)
        with pytest.raises(Killed):
            upload()
    left = files_in_storage()
    assert len(left) == 3
    dataset = Dataset.objects.get()
    Job.objects.filter(pk=dataset.job_id).update(state="waiting", leased_until=None)
    datasets.import_dataset(job_id=dataset.job_id)
    assert len(files_in_storage()) == 6
    assert retention.forget_unowned_files() == 0  # whoever wrote them may still be at it
    assert retention.forget_unowned_files(older_than=timedelta(0)) == 3
    assert not set(left) & set(files_in_storage())
    assert len(stored_rows(dataset)) == len(ROWS)


def test_forgetting_rewrites_the_files_concerned_and_no_byte_of_them_is_left():
    """The search looks into packed pages as well, and finds the others; of the person it finds nothing."""
    project = crowd()
    dataset = upload(project, [*ROWS[:10], ("said by one alone", "Anna"), *ROWS[10:]])
    before, others = digests(dataset), [row for row in stored_rows(dataset) if row[1] != "said by one alone"]
    anna = pseudonym_of("Anna")
    assert holds(b"said by one alone", anna) == [True, True]
    assert [held.project for held in who_lost_what(name="Anna").projects if not held.forgotten] == [project.slug]
    forget(project, "Anna")
    after = digests(dataset)
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, True]
    assert emptied_slots(dataset) == [10]
    assert [row for row in stored_rows(dataset) if row[1] is not None] == others
    assert holds(b"said by one alone", anna, b"text 3 of person 3") == [False, False, True]
    assert len(files_in_storage()) == 3
    assert PoolPart.objects.get(number=1).emptied_count == 1


@pytest.mark.parametrize("step", ["before it is durable", "before the old file goes"])
def test_a_forgetting_that_is_killed_is_taken_up_and_leaves_no_old_file(monkeypatch, step):
    class Killed(BaseException):
        """Ends a worker at a place of the test's choice."""

    project = crowd()
    dataset = upload(project)
    request = request_forgetting(project=project, name="person 2", actor="ada", send=False)

    def die(*args, **options):
        raise Killed

    with monkeypatch.context() as patch:
        if step == "before it is durable":
            patch.setattr(data_forgetting, "empty_records", die)
        else:
            patch.setattr(pool_files.files, "delete", die)
        with pytest.raises(Killed):
            forgetting.forget_contributor(job_id=request.job_id)
    Job.objects.filter(pk=request.job_id).update(leased_until=timezone.now() - timedelta(hours=1))
    forgetting.forget_contributor(job_id=request.job_id)
    assert emptied_slots(dataset) == list(range(2, 23, 5))
    assert len(files_in_storage()) == 3
    assert holds(pseudonym_of("person 2"), b"text 7 of person 2") == [False, False]


def test_retention_empties_whole_uploads_and_says_how_many_records_went():
    project = crowd()
    dataset = upload(project)
    retention.set_retention(project=project, actor="ada", records_days=30)
    assert learner_retention.apply_retention(project_id=project.pk) == {}
    Dataset.objects.filter(pk=dataset.pk).update(created_at=timezone.now() - timedelta(days=31))
    (due,) = (each for each in retention.what_is_due(project) if each.kind == "records")
    assert due.now == len(ROWS)
    before = digests(dataset)
    assert learner_retention.apply_retention(project_id=project.pk) == {"records": len(ROWS)}
    assert not set(before) & set(digests(dataset))
    assert emptied_slots(dataset) == list(range(len(ROWS)))
    assert holds(b"text 3 of person 3", pseudonym_of("person 3")) == [False, False]
    assert learner_retention.apply_retention(project_id=project.pk) == {}


def test_a_deleted_project_leaves_no_file_and_no_catalogue():
    project = crowd()
    upload(project)
    job = lifecycle.request_deletion(
        project=project, typed=project.slug, keep_releases=False, actor="ada", send=False
    ).job
    deletion.delete_project(job_id=job.pk)
    assert (PoolPart.objects.count(), files_in_storage()) == (0, [])


def test_a_changed_file_is_read_by_no_gate_and_the_attempt_is_charged():
    dataset = upload()
    name = PoolPart.objects.get(number=1).file
    path = Path(default_storage.path(name))
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    gates.run_gate(job_id=dataset.gate_job_id)
    job = Job.objects.get(pk=dataset.gate_job_id)
    assert job.state == "failed"
    assert "digest" in job.error
    assert GateRun.objects.get().state == "lost"
    kinds = list(dataset.project.pool_account.entries.order_by("sequence").values_list("kind", flat=True))
    assert kinds[-2:] == ["reserve", "charge"]
    assert not Query.objects.exists()


def test_a_file_that_is_rewritten_meanwhile_is_read_as_it_is_now(monkeypatch):
    dataset = upload()
    (first, *_rest) = pool_files.files_of(dataset)
    part = PoolPart.objects.get(number=0)
    with transaction.atomic():
        pool_files.empty_part(part, None)
    content, sha256 = pool_files.current_content(first)
    assert sha256 == PoolPart.objects.get(number=0).sha256 != first.sha256
    assert content == pool_files.content_of(part)


def refused(rule, act):
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        act()
    assert broken_rule(caught.value) == rule


SHA = "0" * 64
BENT = {
    "rewritten without emptying": ("annotation_poolpart_only_emptied", {"file": "x", "sha256": SHA}),
    "emptied in the same file": ("annotation_poolpart_only_emptied", {"emptied_count": 1, "sha256": SHA}),
    "emptied with the same digest": ("annotation_poolpart_only_emptied", {"emptied_count": 1, "file": "x"}),
    "moved": ("annotation_poolpart_only_emptied", {"emptied_count": 1, "file": "x", "sha256": SHA, "first_row": 5}),
    "shrunk": ("annotation_poolpart_only_emptied", {"emptied_count": 1, "file": "x", "sha256": SHA, "row_count": 9}),
    "emptied beyond its rows": ("annotation_poolpart_rows", {"emptied_count": 99, "file": "x", "sha256": SHA}),
    "empty and naming somebody": ("annotation_poolpart_rows", {"emptied_count": 10, "file": "x", "sha256": SHA}),
    "no digest": ("annotation_poolpart_digest", {"emptied_count": 1, "file": "x", "sha256": "Z" * 64}),
}


@pytest.mark.parametrize("how", BENT)
def test_the_catalogue_changes_by_emptying_alone(how):
    upload()
    rule, changes = BENT[how]
    refused(rule, lambda: PoolPart.objects.filter(number=0).update(**changes))


def part_of(dataset, **fields):
    values = {"number": 7, "first_row": 0, "row_count": 1, "named": False, "file": "another", "sha256": SHA}
    return PoolPart(dataset=dataset, **values | fields)


def test_the_catalogue_belongs_to_a_crowds_pool_that_is_being_read_and_stays():
    dataset = upload()
    refused("annotation_poolpart_of_a_crowd", part_of(dataset).save)
    refused("annotation_poolpart_stays", PoolPart.objects.filter(number=0).delete)
    trusted = upload(make_project(oracle="trusted"))
    refused("annotation_poolpart_of_a_crowd", part_of(trusted).save)
    refused("annotation_rows_in_one_place", Record(dataset=dataset, row_number=99, text="a").save)
    refused("annotation_dataset_columns_fixed", lambda: Dataset.objects.filter(pk=dataset.pk).update(in_columns=False))


@pytest.mark.parametrize(
    ("parts", "rows"), [([(0, 0, 2), (1, 2, 1)], 4), ([(0, 0, 2), (2, 2, 1)], 3), ([(0, 0, 2), (1, 1, 1)], 3), ([], 1)]
)
def test_a_pool_is_ready_when_its_files_hold_its_rows_without_a_gap(parts, rows):
    dataset = Dataset.objects.create(
        project=crowd(), job=Job.objects.create(project=crowd(), kind="import"), name="pool", in_columns=True
    )
    for number, first, count in parts:
        part_of(dataset, number=number, first_row=first, row_count=count, file=str(number)).save()
    ready = {"state": DatasetState.READY, "row_count": rows}
    refused("annotation_pool_whole", lambda: Dataset.objects.filter(pk=dataset.pk).update(**ready))


def population(**terms):
    given = {"name": "Patients", "unit": "record", "filter": "pure", "epsilon_limit": 90.0, "delta_limit": 0.9}
    return open_population(owner=make_user(), **given | terms)


def join(project, people):
    services.add_project(population=people, project=project, records_per_person=30, actor=make_user())


def test_records_that_a_population_counts_by_person_stay_in_the_database():
    project, people = crowd(), population()
    join(project, people)
    dataset = upload(project)
    assert not dataset.in_columns
    assert Record.objects.filter(dataset=dataset).count() == len(ROWS)


def test_a_project_with_columns_that_name_people_joins_no_population_that_counts_them():
    project, people = crowd(), population()
    upload(project)
    with pytest.raises(UnsoundCombination, match="before its first upload"):
        join(project, people)


def test_a_project_that_joins_while_a_file_is_read_has_it_refused(monkeypatch):
    project, people = crowd(), population()
    real = datasets._copy

    def join_meanwhile(*args):
        rows = real(*args)
        monkeypatch.setattr(pool_files, "_is_counted", lambda project: True)
        return rows

    monkeypatch.setattr(datasets, "_copy", join_meanwhile)
    dataset = upload(project)
    assert (dataset.state, files_in_storage()) == ("refused", [])
    assert "joined a population" in dataset.job.error
    monkeypatch.undo()
    # The database says so as well, whichever came first.
    join(project, people)
    Dataset.objects.filter(pk=dataset.pk).update(state="receiving")
    refused("annotation_counted_in_database", part_of(dataset, named=True).save)
    with as_owner():
        part_of(dataset, named=False).save()
