import csv
import io
import os
from pathlib import Path

import numpy as np
import pytest
from django.core.files.storage import default_storage
from django.db import connections
from django.db.models import Max

from annotation.data.services import forgetting as records
from annotation.data.services.label_files import ExportFormat, export_labels
from annotation.models import Assignment, Consensus, Dataset, Label, Query, Record, Report
from annotation.models.retention import Forgetting
from annotation.questions.services import flags, labels, queue
from annotation.review.selectors import annotators_work
from annotation.selectors import undoable_assignments
from learner.models import FeatureMatrix, ModelRelease
from learner.pools import features
from learner.pools import records as pool_selectors
from learner.rounds.services import forgetting as rounds_forgetting
from privacy.ledger.models import LedgerEntry
from tests import learning, pools
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
ANNA = "anna"


def fill(project, *, number=60, every=6):
    texts = learning.sentences(number)
    people = [ANNA if place % every == 0 else f"person {place}" for place in range(number)]
    return learning.upload(project, list(zip(texts, people, strict=True)), ["text", "contributor"])


def forget(project, name=ANNA):
    request = records.request_forgetting(project=project, name=name, actor="manager", send=False)
    rounds_forgetting.forget_contributor(job_id=request.job_id)
    request.refresh_from_db()
    return request


def ledger_lines():
    return list(LedgerEntry.objects.order_by("pk").values_list("pk", "hash", "epsilon_spent_nano"))


def matrix_of(dataset):
    return np.array(features.open_features(dataset))


def emptied_slots(project):
    found = Record.objects.filter(dataset__project=project, emptied=True).order_by("row_number")
    return list(found.values_list("row_number", flat=True))


@pytest.fixture
def project(db, remembered):
    return remembered("a release that Anna is in", with_anna)


def with_anna():
    opened = learning.open_trusted(make_user(), selection="random", round_size=24, labels_per_release=24)
    fill(opened)
    learning.run_to_release(opened, make_user("annotator"), version=1)
    return opened


def test_nothing_of_the_records_is_left_and_nothing_else_changes(project) -> None:
    """Text, pseudonym, answers and features go; other records, the ledger and the release stay to the byte."""
    dataset = Dataset.objects.get(project=project)
    before, entries = matrix_of(dataset), ledger_lines()
    old_file = FeatureMatrix.objects.get(dataset=dataset).file.path
    release = ModelRelease.objects.values().get()
    others = list(Record.objects.exclude(contributor=records.pseudonym_of(ANNA)).order_by("pk").values())
    own = Record.objects.filter(contributor=records.pseudonym_of(ANNA))
    hers = list(own.order_by("row_number").values_list("row_number", flat=True))
    request = forget(project)
    assert request.job.state == "done"
    assert request.contributor is None
    assert emptied_slots(project) == hers == list(range(0, 60, 6))
    gone = Record.objects.filter(emptied=True).values_list("text", "payload", "contributor", "label")
    assert set(gone) == {("", None, None, None)}
    assert list(Record.objects.filter(emptied=False).order_by("pk").values()) == others
    after = matrix_of(dataset)
    kept = np.setdiff1d(np.arange(60), hers)
    assert not after[hers].any()
    np.testing.assert_array_equal(after[kept], before[kept])
    assert not Path(old_file).exists()
    assert ledger_lines() == entries
    assert ModelRelease.objects.values().get() == release


def test_answers_lose_what_they_said_and_keep_that_they_were_given(project) -> None:
    """Payment counts the answer, no file shows it, and a training leaves it out."""
    about = Query.objects.filter(record__contributor=records.pseudonym_of(ANNA))
    answered = Label.objects.filter(query__in=about)
    assert answered.exists()
    ids = list(answered.values_list("pk", flat=True))
    paid = [(sheet.answers, sheet.accepted) for sheet in annotators_work(project)]
    agreed = Consensus.objects.filter(project=project).count()
    forget(project)
    assert set(Label.objects.filter(pk__in=ids).values_list("choice", flat=True)) == {None}
    assert [(sheet.answers, sheet.accepted) for sheet in annotators_work(project)] == paid
    text = b"".join(export_labels(project=project, format=ExportFormat.CSV, history=True)).decode()
    assert {int(row["question"]) for row in csv.DictReader(io.StringIO(text))}.isdisjoint(
        Query.objects.filter(emptied=True).values_list("pk", flat=True)
    )
    assert Consensus.objects.filter(project=project).count() == agreed
    last = Consensus.objects.aggregate(last=Max("pk"))["last"]
    examples, classes = pool_selectors.labelled_examples(project, last_consensus_id=last)
    assert len(examples.ids) == len(classes) == agreed - Query.objects.filter(emptied=True, consensus__gte=0).count()
    assert not Record.objects.filter(pk__in=examples.ids.tolist(), emptied=True).exists()


def test_the_number_of_slots_stays_and_an_empty_one_asks_nobody(project) -> None:
    """The next choice has as many candidates as before, may draw empty slots, and hands none of them out."""
    candidates, size = len(pool_selectors.open_records(project).rows), pool_selectors.pool_size(project)
    forget(project)
    assert len(pool_selectors.open_records(project).rows) == candidates
    assert pool_selectors.pool_size(project) == size
    left = list(pool_selectors.unasked_records(project).values_list("pk", flat=True))
    queue.open_queries(project=project, round_number=9, record_ids=left)
    drawn = Query.objects.filter(round_number=9)
    assert drawn.count() == len(left)
    assert set(drawn.filter(record__emptied=True).values_list("state", "open_slots")) == {("withdrawn", 0)}
    annotator = make_user()
    learning.label_everything(project, annotator)
    assert not Assignment.objects.filter(annotator=annotator, query__record__emptied=True).exists()


def test_open_questions_are_withdrawn_and_leases_end() -> None:
    """Somebody looks at the record at this moment: their answer is refused, the comment about it is gone."""
    project = learning.open_trusted(make_user(), selection="random", round_size=60)
    fill(project, every=1)
    learning.work_off(project)
    annotator = make_user()
    learning.label_everything(project, annotator, at_most=1)
    held = queue.claim_next(project=project, user=annotator)
    assert held is not None
    report = flags.comment_on(assignment=held, comment="I know her")
    flags.reply(project=project, report_id=report.pk, text="Do you?", author=project.created_by)
    forget(project)
    with pytest.raises(Exception, match="The time ran out and another"):
        labels.submit_label(assignment=held, choice=0)
    assert set(Query.objects.values_list("state", flat=True)) == {"withdrawn"}
    assert not Report.objects.exists()
    assert queue.claim_next(project=project, user=annotator) is None
    assert not undoable_assignments(annotator).exists()


def test_images_and_tables_are_erased_in_their_files(png_archive) -> None:
    """A pixel file is overwritten where it lies."""
    project, dataset = png_archive
    Record.objects.filter(dataset=dataset, row_number__in=[1, 3]).update(contributor=records.pseudonym_of(ANNA))
    path = default_storage.path(dataset.pixels.name)
    before = np.load(path)
    matrix_of(dataset)
    forget(project)
    after = np.load(path)
    assert not after[[1, 3]].any()
    np.testing.assert_array_equal(after[[0, 2]], before[[0, 2]])
    assert not matrix_of(dataset)[[1, 3]].any()


@pytest.fixture
def png_archive(db):
    project = learning.open_images(make_user())
    dataset = Dataset.objects.create(
        project=project, job=project.jobs.create(kind="import"), name="images", state="ready", row_count=4
    )
    pixels = io.BytesIO()
    np.save(pixels, np.ones((4, 4, 4), dtype=np.uint8))
    pixels.seek(0)
    dataset.pixels.name = default_storage.save(f"datasets/{project.pk}/pixels-1.npy", pixels)
    dataset.save()
    Record.objects.bulk_create(Record(dataset=dataset, row_number=row) for row in range(4))
    return project, dataset


def test_a_crowd_project_forgets_records_and_keeps_what_passed() -> None:
    """Gate output names nobody and was shown; an upload that is not through yet goes through without them."""
    project = learning.open_crowd(make_user())
    texts = learning.sentences(2)
    rows = [[text, f"person {place}"] for text in texts for place in range(60)]
    learning.upload(project, rows, ["text", "contributor"])
    passed = list(Query.objects.order_by("pk").values())
    preview = rounds_forgetting.preview_forgetting(project=project, name="person 7")
    assert preview.traces.records == 2
    assert preview.traces.passed_gate
    forget(project, "person 7")
    assert list(Query.objects.order_by("pk").values()) == passed
    assert pools.emptied_slots(Dataset.objects.get(project=project)) == [7, 67]


def test_the_request_is_remembered_by_a_keyed_digest_alone(project, settings) -> None:
    """Neither the name nor the pseudonym is in the row once it is done; another key gives another digest."""
    request = forget(project)
    pseudonym = records.pseudonym_of(ANNA)
    row = repr(Forgetting.objects.values().get())
    assert ANNA not in row
    assert pseudonym.hex() not in row
    assert request.reference == records.reference_of(project=project, contributor=pseudonym)
    settings.PSEUDONYM_KEY = "x" * 64
    assert request.reference != records.reference_of(project=project, contributor=records.pseudonym_of(ANNA))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("step", ["records_emptied", "features_zeroed", "files_zeroed"])
def test_a_killed_attempt_is_taken_up_where_it_stopped(project, step, settings) -> None:
    """Whatever the moment, the files that a row names are whole, and the next attempt ends it."""
    settings.WORK_LEASE_SECONDS = 1
    dataset = Dataset.objects.get(project=project)
    request = records.request_forgetting(project=project, name=ANNA, actor="manager", send=False)
    connections.close_all()
    child = os.fork()
    if child == 0:
        os.environ["DPAL_FAULT_POINT"] = step
        try:
            rounds_forgetting.forget_contributor(job_id=request.job_id)
        finally:
            os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert matrix_of(dataset).shape == (60, 16)
    request.job.__class__.objects.filter(pk=request.job_id).update(leased_until="2000-01-01T00:00:00Z")
    rounds_forgetting.forget_contributor(job_id=request.job_id)
    request.refresh_from_db()
    assert request.finished_at is not None
    assert not matrix_of(dataset)[::6].any()
    folder = Path(FeatureMatrix.objects.get(dataset=dataset).file.path).parent
    assert len(list(folder.glob(f"{dataset.pk}-*"))) == 1


def test_the_promise_for_several_records_together() -> None:
    """k records are under k epsilon; a contributor as the unit is under the limit whatever k is."""
    alone = rounds_forgetting.Promise(epsilon=1.0, delta=1e-6, records=1, whole_contributor=False)
    three = rounds_forgetting.Promise(epsilon=1.0, delta=1e-6, records=3, whole_contributor=False)
    whole = rounds_forgetting.Promise(epsilon=1.0, delta=1e-6, records=3, whole_contributor=True)
    assert alone.together == whole.together == (1.0, 1e-6)
    epsilon, delta = three.together
    assert epsilon == 3.0
    assert delta == pytest.approx(1e-6 * (1 + np.e + np.e**2))
    assert rounds_forgetting.Promise(1.0, 1e-6, 10_000, whole_contributor=False).together == (10_000.0, 1.0)
