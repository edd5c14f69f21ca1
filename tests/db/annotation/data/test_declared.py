"""A project of a population holds no more records of one person than its owner declared, whenever they come."""

import io
import threading

import pytest
from django.core.files import File
from django.db import IntegrityError, connection, transaction

from annotation.budget import charges, services
from annotation.budget import services as budget_populations
from annotation.data.services import datasets, forgetting, pool_files, registered
from annotation.data.services.datasets import HIDDEN
from annotation.data.services.forgetting import pseudonym_of
from annotation.errors import TableChanged
from annotation.models import Dataset, DatasetState, GateRun, Job, PoolPart, PoolSource, Record, SourceFile
from privacy.accounting.events import GateOfSnapshotEvent
from privacy.errors import UnsoundCombination
from privacy.ledger import populations
from privacy.ledger import services as ledger
from privacy.ledger.entries import broken_rule
from tests import learning
from tests.factories import make_account, make_project, make_user, open_population, receive_upload
from tests.lakes import TEXTS, register, write_table
from tests.owning import as_owner

pytestmark = pytest.mark.django_db(transaction=True)
RULE = "annotation_records_as_declared"


@pytest.fixture
def population(owner):
    return open_population(owner=owner)


@pytest.fixture
def project(owner):
    return learning.open_trusted(owner)


def join(population, project, number):
    budget_populations.add_project(
        population=population, project=project, records_per_person=number, actor=population.managers.first().user
    )


def received(project, *people, seed=1):
    texts = learning.sentences(len(people), seed=seed)
    lines = ["text,who", *(f'"{text}",{name}' for text, name in zip(texts, people, strict=True))]
    return receive_upload(
        project=project,
        file=File(io.BytesIO("\n".join(lines).encode()), name="rows.csv"),
        name="rows.csv",
        mapping={"text": "text", "contributor": "who"},
        send=False,
    )


def bring(project, *people, seed=1):
    dataset = received(project, *people, seed=seed)
    datasets.import_dataset(job_id=dataset.job_id)
    return Dataset.objects.select_related("job").get(pk=dataset.pk)


def assert_refused(dataset, told):
    assert dataset.state == DatasetState.REFUSED
    assert dataset.job.error == HIDDEN, "what it says of other records is for nobody else"
    assert told in dataset.uploader_reason
    assert not any(name in dataset.uploader_reason for name in ("anna", "ben"))
    assert not Record.objects.filter(dataset=dataset).exists()


def test_a_later_upload_is_held_against_the_declared_number(population, project):
    join(population, project, 2)
    assert bring(project, "anna", "anna", "ben").state == DatasetState.READY
    assert bring(project, "ben", "carl", seed=2).state == DatasetState.READY
    assert_refused(bring(project, "anna", seed=3), "more than the 2 records declared")
    assert bring(project, "dora", seed=3).state == DatasetState.READY


def test_one_file_alone_may_name_somebody_too_often(population, project):
    join(population, project, 1)
    assert_refused(bring(project, "ben", "anna", "ben"), "more than the 1 records")


def test_without_a_population_nobody_counts(project):
    assert bring(project, "anna", "anna", "anna").state == DatasetState.READY


def test_who_was_forgotten_does_not_come_again(population, project):
    join(population, project, 2)
    bring(project, "anna", "ben")
    asked = forgetting.request_forgetting(project=project, name="anna", actor="owner", send=False)
    forgetting.forget_records(forgetting=asked)
    assert_refused(bring(project, "anna", seed=2), "was erased here")
    assert bring(project, "ben", seed=2).state == DatasetState.READY


def stored(project, *people, state=DatasetState.READY):
    dataset = Dataset.objects.create(
        project=project, job=Job.objects.create(project=project, kind="import"), name="pool", state=state
    )
    Record.objects.bulk_create(
        Record(dataset=dataset, row_number=number, text="t", contributor=pseudonym_of(name))
        for number, name in enumerate(people)
    )
    return dataset


def refused(act):
    def act_and_end() -> None:
        with transaction.atomic():
            act()

    with pytest.raises(IntegrityError) as caught:
        act_and_end()
    assert broken_rule(caught.value) == RULE


def test_the_database_refuses_an_upload_that_becomes_ready(population, project):
    join(population, project, 1)
    waiting = stored(project, "anna", "anna", state=DatasetState.RECEIVING)
    refused(lambda: Dataset.objects.filter(pk=waiting.pk).update(state=DatasetState.READY))


def test_the_database_refuses_rows_that_come_to_a_ready_one(population, project):
    join(population, project, 1)
    refused(lambda: stored(project, "anna", "anna"))


def test_the_database_refuses_a_row_that_is_said_to_be_somebody_elses(population, project):
    join(population, project, 1)
    dataset = stored(project, "anna", "ben")
    refused(lambda: Record.objects.filter(dataset=dataset, row_number=1).update(contributor=pseudonym_of("anna")))


def test_the_database_refuses_a_number_below_what_stands(population, project):
    stored(project, "anna", "anna")
    refused(
        lambda: populations.join_population(
            population=population, accounts=[project.pool_account], records_per_person=1, actor="t"
        )
    )


def test_of_other_projects_nothing_counts(population, project):
    join(population, project, 1)
    stored(make_project(), "anna", "anna")
    stored(project, "anna")


def test_of_two_uploads_at_once_the_later_one_sees_the_earlier(population, project):
    join(population, project, 1)
    both = [received(project, "anna", seed=seed) for seed in (1, 2)]
    begin = threading.Barrier(2)

    def read(dataset: Dataset) -> None:
        begin.wait()
        datasets.import_dataset(job_id=dataset.job_id)
        connection.close()

    threads = [threading.Thread(target=read, args=(each,)) for each in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    states = sorted(Dataset.objects.filter(project=project).values_list("state", flat=True))
    assert states == [DatasetState.READY, DatasetState.REFUSED]


SHA = "0" * 64


@pytest.fixture
def table(tmp_path, settings):
    settings.POOL_SOURCES = [tmp_path.as_uri()]
    return write_table(tmp_path / "log")


def crowd(**fields):
    account = make_account(epsilon_limit=10.0, delta_limit=0.5)
    return make_project(oracle="crowd", normalizer="L1", pool_account=account, gate_k=8, gate_epsilon=1.0, **fields)


def refused_by(rule, act):
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        act()
    assert broken_rule(caught.value) == rule


def receiving(project=None, **fields):
    project = project or crowd()
    values = {"name": "pool", "in_columns": True, "mapping": {"text": "said"}} | fields
    return Dataset.objects.create(project=project, job=Job.objects.create(project=project, kind="import"), **values)


def source_file(dataset, **fields):
    values = {"number": 7, "first_row": 0, "row_count": 1, "name": "another", "sha256": SHA}
    return SourceFile(source_id=dataset.pk, **values | fields)


def test_the_catalogue_holds_rows_and_a_keyed_id_and_no_row(table):
    dataset = register(crowd(), table)
    source = registered.source_of(dataset)
    assert (dataset.state, dataset.row_count, dataset.bad_row_count) == ("ready", len(TEXTS), 0)
    held = source.files.order_by("number").values_list("name", "first_row", "row_count")
    assert list(held) == [("part-0.parquet", 0, 241), ("part-1.parquet", 241, 241), ("part-2.parquet", 482, 239)]
    assert len(source.snapshot) == 64
    again = registered.source_of(register(dataset.project, table))
    assert again.snapshot != source.snapshot
    assert not Record.objects.exists()
    assert not PoolPart.objects.exists()
    registered.refuse_changed(source, lambda: None)


def test_a_table_that_was_written_again_is_found_out(table):
    source = registered.source_of(register(crowd(), table))
    write_table(table)
    with pytest.raises(TableChanged, match="The table has changed"):
        registered.refuse_changed(source, lambda: None)


def test_a_place_that_is_allowed_no_more_is_read_no_more(table, settings):
    source = registered.source_of(register(crowd(), table))
    settings.POOL_SOURCES = []
    with pytest.raises(TableChanged, match="registers no tables"):
        registered.refuse_changed(source, lambda: None)


def test_its_rows_are_read_by_a_gate_alone(table):
    dataset = register(crowd(), table)
    with pytest.raises(UnsoundCombination, match="by its gate alone"):
        next(pool_files.records(dataset))


CHANGES = {
    "address": ("annotation_poolsource_fixed", {"address": "file:///elsewhere"}),
    "secret": ("annotation_poolsource_fixed", {"secret": b"x"}),
    "snapshot": ("annotation_poolsource_fixed", {"snapshot": SHA}),
    "taken back": ("annotation_poolsource_fixed", {"snapshot": ""}),
    "Iceberg": ("annotation_poolsource_fixed", {"format_snapshot": {"snapshot": 5}}),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_source_stays_what_was_registered(table, what):
    dataset = register(crowd(), table)
    rule, changes = CHANGES[what]
    refused_by(rule, lambda: PoolSource.objects.filter(dataset=dataset).update(**changes))


@pytest.mark.parametrize("found", [None, {"snapshot": 6}])
def test_an_iceberg_snapshot_that_was_asked_for_is_the_one_that_is_read(found):
    source = source_row(receiving(), format_snapshot={"snapshot": 5})
    source.save()
    noted = PoolSource.objects.filter(pk=source.pk)
    refused_by("annotation_poolsource_fixed", lambda: noted.update(snapshot=SHA, format_snapshot=found))
    noted.update(snapshot=SHA, format_snapshot={"snapshot": 5, "table": "a", "text_id": 1, "contributor_id": None})


def test_its_files_stay_what_was_read(table):
    dataset = register(crowd(), table)
    files = SourceFile.objects.filter(source=dataset.pk)
    with as_owner():
        refused_by("annotation_sourcefile_fixed", lambda: files.update(row_count=5))
    refused_by("annotation_sourcefile_in_time", source_file(dataset).save)
    refused_by("annotation_sourcefile_stays", files.delete)
    refused_by("annotation_poolsource_stays", lambda: PoolSource.objects.filter(dataset=dataset)._raw_delete("default"))
    refused_by("annotation_rows_in_one_place", Record(dataset=dataset, row_number=0, text="a").save)


def source_row(dataset, **fields):
    return PoolSource(dataset=dataset, **{"address": "file:///a", "secret": b"s"} | fields)


@pytest.mark.parametrize(
    ("rule", "fields"),
    [
        ("annotation_poolsource_address", {"address": "http://a"}),
        ("annotation_poolsource_address", {"address": "/etc"}),
        ("annotation_poolsource_digest", {"snapshot": "x"}),
        ("annotation_poolsource_of_a_crowd", {"snapshot": SHA}),
    ],
)
def test_a_source_has_an_address_and_no_snapshot_yet(rule, fields):
    refused_by(rule, source_row(receiving(), **fields).save)


@pytest.mark.parametrize(
    ("rule", "fields"),
    [
        ("annotation_sourcefile_rows", {"row_count": -1}),
        ("annotation_sourcefile_rows", {"first_row": -1}),
        ("annotation_sourcefile_digest", {"sha256": "Z" * 64}),
        ("annotation_sourcefile_once", {"number": 0}),
        ("annotation_sourcefile_name", {"name": "first"}),
    ],
)
def test_a_file_has_rows_and_a_digest_once(rule, fields):
    dataset = receiving()
    source_row(dataset).save()
    source_file(dataset, number=0, name="first").save()
    refused_by(rule, source_file(dataset, **fields).save)


def test_tables_are_pools_of_texts_for_a_crowd():
    wrong = [receiving(make_project(oracle="trusted")), receiving(in_columns=False), receiving(role="public_test")]
    for dataset in wrong:
        refused_by("annotation_poolsource_of_a_crowd", source_row(dataset).save)
    refused_by("annotation_table_by_itself", source_row(receiving(crowd(gate_window=3))).save)


@pytest.mark.parametrize(("rows", "snapshot", "count"), [(4, SHA, 3), (3, "", 3), (0, SHA, 0)])
def test_a_table_is_ready_with_its_snapshot_and_all_its_rows(rows, snapshot, count):
    dataset = receiving()
    source = source_row(dataset)
    source.save()
    if count:
        source_file(dataset, number=0, row_count=count).save()
    else:
        source_file(dataset, number=1, row_count=count).save()
    if snapshot:
        PoolSource.objects.update(snapshot=snapshot)
    ready = {"state": DatasetState.READY, "row_count": rows}
    refused_by("annotation_pool_whole", lambda: Dataset.objects.filter(pk=dataset.pk).update(**ready))


def test_no_data_of_another_role_stand_beside_one(table):
    dataset = register(crowd(), table)
    test = receiving(dataset.project, role="public_test", in_columns=False)
    refused_by("annotation_table_alone", lambda: Dataset.objects.filter(pk=test.pk).update(state=DatasetState.READY))


def test_a_population_that_counts_by_person_takes_no_project_with_a_table(table):
    dataset = register(crowd(), table)
    people = open_population(unit="record", epsilon_limit=90.0, delta_limit=0.9)
    with pytest.raises(UnsoundCombination):
        services.add_project(population=people, project=dataset.project, records_per_person=3, actor=make_user())


@pytest.mark.parametrize("paid", ["nothing of a snapshot", "another snapshot"])
def test_a_run_over_a_table_is_paid_with_its_snapshot(table, paid):
    dataset = register(crowd(), table)
    event = charges.one_run(dataset.project)
    if paid == "another snapshot":
        event = GateOfSnapshotEvent(event, SHA)
    entry = ledger.reserve(account=dataset.project.pool_account, event=event, purpose="p", key=dataset.job_id)
    run = GateRun(project=dataset.project, dataset=dataset, reservation=entry)
    refused_by("annotation_gate_run_snapshot", run.save)


def test_an_upload_is_not_paid_as_a_table(table):
    dataset = receiving()
    event = GateOfSnapshotEvent(charges.one_run(dataset.project), SHA)
    entry = ledger.reserve(account=dataset.project.pool_account, event=event, purpose="p", key=dataset.job_id)
    refused_by(
        "annotation_gate_run_snapshot", GateRun(project=dataset.project, dataset=dataset, reservation=entry).save
    )
