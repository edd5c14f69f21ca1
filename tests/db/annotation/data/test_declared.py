"""A project of a population holds no more records of one person than its owner declared, whenever they come."""

import io
import threading

import pytest
from django.core.files import File
from django.db import IntegrityError, connection, transaction

from annotation.budget import services as budget_populations
from annotation.data.services import datasets, forgetting
from annotation.data.services.datasets import HIDDEN
from annotation.data.services.forgetting import pseudonym_of
from annotation.models import Dataset, DatasetState, Job, Record
from privacy.ledger import populations
from privacy.ledger.entries import broken_rule
from tests import learning
from tests.factories import make_project, open_population, receive_upload

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
