"""A table is registered where it lies and read at its ends alone; what has no proof is refused by name."""

import pyarrow as pa
import pytest
from django.core.files.base import ContentFile

from annotation.budget import services
from annotation.data.readers.stores import FolderTable
from annotation.data.services import datasets, forgetting, registered
from annotation.data.who_lost_what import who_lost_what
from annotation.errors import ForgettingRefused, InvalidUpload
from annotation.gates import services as gates
from annotation.models import Dataset, GateRun, PoolSource, Record, SourceFile
from annotation.projects.services import lifecycle
from learner.rounds.services import closing as deletion
from learner.rounds.services.forgetting import preview_forgetting
from tests.factories import make_account, make_project, make_user, open_population, receive_upload
from tests.iceberg import write_iceberg
from tests.lakes import TEXTS, register, spoil_pages, write_table

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nothing_is_sent(monkeypatch, own_storage):
    monkeypatch.setattr("celery.app.base.Celery.send_task", lambda *args, **options: None)
    monkeypatch.setattr("celery.canvas.Signature.apply_async", lambda *args, **options: None)


@pytest.fixture
def table(tmp_path, settings):
    settings.POOL_SOURCES = [(tmp_path / "lake").as_uri()]
    return write_table(tmp_path / "lake" / "log")


def crowd(**fields):
    account = fields.pop("pool_account", None) or make_account(epsilon_limit=10.0, delta_limit=0.5)
    return make_project(oracle="crowd", normalizer="L1", pool_account=account, gate_k=8, gate_epsilon=1.0, **fields)


def test_registering_reads_no_page_of_data_and_stores_no_row(monkeypatch, table):
    """Pages are garbage, and not a byte before a footer is asked for."""
    spoil_pages(table)
    read, asked = FolderTable.read, []

    def noted(store, file, start, length):
        asked.append((table / file.name, start))
        return read(store, file, start, length)

    monkeypatch.setattr(FolderTable, "read", noted)
    monkeypatch.setattr(gates, "start_gate", lambda **given: None)
    dataset = register(crowd(), table)
    assert (dataset.state, dataset.row_count) == ("ready", len(TEXTS))
    assert len(asked) == 6
    for path, start in asked:
        content = path.read_bytes()
        assert start >= len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    assert not Record.objects.exists()


def test_a_table_that_cannot_be_read_is_refused_with_its_rule(table):
    pages = {"no-such": "neither a folder", "log/part-1.parquet": None}
    for place, rule in pages.items():
        dataset = register(crowd(), table.parent / place)
        assert dataset.state == ("refused" if rule else "ready")
        assert (rule or "rows of the table") in (dataset.job.error or dataset.job.message)
    dataset = register(crowd(), table, text="words")
    assert (dataset.state, dataset.job.error) == ("refused", "text: a file of the table has no single column 'words'")
    nothing = pa.array([], pa.string())
    write_table(table.parent / "none", texts=nothing, people=nothing, files=1)
    assert "the file holds none" in register(crowd(), table.parent / "none").job.error
    assert GateRun.objects.count() == 0


def test_a_delta_table_is_refused_by_its_name(table):
    (table / "_delta_log").mkdir()
    (table / "_delta_log" / "0.json").write_text("{}")
    assert register(crowd(), table).job.error.startswith("address: this is a Delta Lake")


def test_without_the_add_on_an_iceberg_table_is_refused_by_its_name(table, monkeypatch):
    lake = write_iceberg(table.parent / "ice")
    monkeypatch.setattr(registered, "FORMATS", [])
    (metadata, *_) = sorted(lake.folder.glob("metadata/*.metadata.json"))
    for address in (lake.folder, metadata):
        dataset = register(crowd(), address)
        assert dataset.state == "refused"
        assert dataset.job.error.startswith("address: Iceberg tables need the add-on")


def test_an_iceberg_table_is_registered_by_its_folder_or_by_a_metadata_file(table):
    lake = write_iceberg(table.parent / "ice")
    first = lake.snapshots[0]["snapshot-id"]
    lake.commit([lake.manifest("2.avro", [lake.data_file("b.parquet", ["b"], ["B"])])])
    place = table.parent / "ice"
    ways = {
        place: (1, lake.snapshots[1]["snapshot-id"]),
        place / "metadata" / "00000-5f8b14ea.metadata.json": (len(TEXTS), first),
    }
    for address, expected in ways.items():
        dataset = register(crowd(), address)
        assert (dataset.row_count, dataset.source.snapshot_number) == expected
    named = register(crowd(), place, snapshot=first)
    assert (named.row_count, named.source.snapshot_number) == (len(TEXTS), first)
    rules = {
        place: "snapshot: the Iceberg table has no snapshot 5",
        table: "snapshot: only Iceberg tables have snapshots",
    }
    for address, rule in rules.items():
        assert register(crowd(), address, snapshot=5).job.error.startswith(rule)
    refused("lies in the folder metadata", project=crowd(), address=(place / "00000-5f8b14ea.metadata.json").as_uri())


def refused(rule, **given):
    before = PoolSource.objects.count()
    with pytest.raises(InvalidUpload, match=rule):
        registered.register_table(**{"address": "file:///x", "send": False} | given)
    assert PoolSource.objects.count() == before


def test_projects_whose_promise_needs_the_rows_here_take_no_table(table):
    refused("address: only crowd projects with texts register", project=make_project(), address=table.as_uri())
    refused("snapshots of a table share records", project=crowd(gate_window=3), address=table.as_uri())
    project = crowd()
    refused("lies outside", project=project, address="file:///etc")
    refused("without . or ..", project=project, address=f"{table.as_uri()}/../x")
    refused("begins with file:// or s3://", project=project, address="https://lake/log")
    refused("contributor: leave it out; this project", project=project, address=table.as_uri(), contributor="who")
    people = crowd(
        privacy_unit="contributor",
        texts_per_contributor=2,
        pool_account=make_account(unit="contributor", epsilon_limit=10.0, delta_limit=0.5),
    )
    refused("a column must name them", project=people, address=table.as_uri())
    assert not registered.may_register(make_project())
    assert registered.may_register(project)


def test_a_project_that_a_population_counts_by_person_takes_none(table):
    people = open_population(unit="record", epsilon_limit=90.0, delta_limit=0.9)
    project = crowd()
    services.add_project(population=people, project=project, records_per_person=30, actor=make_user())
    refused("address: a population counts records per", project=project, address=table.as_uri())


def public(project):
    return receive_upload(
        project=project,
        file=ContentFile(b"text,label\nsome words,sport\n"),
        name="test.csv",
        role="public_test",
        send=False,
    )


def test_a_table_and_data_of_another_role_stand_in_different_projects(table):
    project = crowd()
    datasets.import_dataset(job_id=public(project).job_id)
    refused("never compared", project=project, address=table.as_uri())
    other = crowd()
    register(other, table)
    with pytest.raises(InvalidUpload, match="never compared"):
        public(other)


def test_of_two_that_come_at_once_the_later_one_is_refused(table):
    project = crowd()
    dataset = registered.register_table(project=project, address=table.as_uri(), text="said", send=False)
    PoolSource.objects.filter(dataset=dataset)
    with pytest.raises(InvalidUpload, match="never compared"):
        public(project)
    Dataset.objects.filter(pk=dataset.pk).update(state="refused")
    test = public(project)
    datasets.import_dataset(job_id=test.job_id)
    test.refresh_from_db()
    assert test.state == "ready"


def test_a_cancelled_registration_can_be_read_again(table):
    dataset = registered.register_table(project=crowd(), address=table.as_uri(), text="said", send=False)
    type(dataset.job).objects.filter(pk=dataset.job_id).update(state="failed", finished_at=dataset.created_at)
    job = datasets.read_again(dataset=dataset)
    datasets.import_dataset(job_id=job.pk)
    dataset.refresh_from_db()
    assert dataset.state == "ready"


def test_forgetting_says_that_the_owner_writes_the_table_again(table):
    project = crowd()
    register(project, table)
    with pytest.raises(ForgettingRefused, match="No stored record names this contributor"):
        forgetting.request_forgetting(project=project, name="person 1", actor="ada", send=False)
    assert who_lost_what(name="person 1").tables == (project.slug,)
    assert preview_forgetting(project=project, name="person 1").traces.registered_tables == 1


def test_a_deleted_project_forgets_the_table_and_leaves_its_files(table):
    project = crowd()
    register(project, table)
    before = {path.name: path.read_bytes() for path in table.iterdir()}
    job = lifecycle.request_deletion(
        project=project, typed=project.slug, keep_releases=False, actor="ada", send=False
    ).job
    deletion.delete_project(job_id=job.pk)
    assert (PoolSource.objects.count(), SourceFile.objects.count()) == (0, 0)
    assert {path.name: path.read_bytes() for path in table.iterdir()} == before


def test_a_table_in_a_bucket_is_registered_by_its_ends_and_passes_the_gate(bucket, table, settings):
    settings.POOL_SOURCES = ["s3://lake/{project}"]
    project = crowd()
    for path in table.iterdir():
        bucket.objects[f"/lake/{project.slug}/log/{path.name}"] = path.read_bytes()
    bucket.objects[f"/lake/{project.slug}/log/_temporary/x.parquet"] = b""
    dataset = register(project, f"s3://lake/{project.slug}/log")
    assert (dataset.state, dataset.row_count) == ("ready", len(TEXTS))
    for key, start, _end in bucket.ranges:
        content = bucket.objects[key]
        assert start >= len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    gates.run_gate(job_id=dataset.gate_job_id)
    assert GateRun.objects.get().passed_count > 1
    lake = write_iceberg(table.parent / "ice", location="s3a://lake/anywhere")
    for path in (path for path in lake.folder.rglob("*") if path.is_file()):
        bucket.objects[f"/lake/{project.slug}/ice/{path.relative_to(lake.folder)}"] = path.read_bytes()
    assert register(project, f"s3://lake/{project.slug}/ice").row_count == len(TEXTS)
    again = register(project, f"s3://lake/{project.slug}/log")
    bucket.objects[f"/lake/{project.slug}/log/part-1.parquet"] += b"x"
    gates.run_gate(job_id=again.gate_job_id)
    again.gate_job.refresh_from_db()
    assert again.gate_job.error.startswith("The table has changed")
    assert GateRun.objects.count() == 1
