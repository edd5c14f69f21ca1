"""One row, one role: a file is not pool, test and start at once, in whatever order and spelling it comes."""

import io
import threading

import numpy as np
import pytest
from django.core.files import File
from django.db import close_old_connections, connection
from django.urls import reverse

from annotation.data.services import datasets, import_parts, shared_rows, streams
from annotation.data.services.shared_rows import HIDDEN
from annotation.errors import InvalidRecords, InvalidUpload
from annotation.models import Dataset, DatasetState, Job, Record, RecordPost
from annotation.models.imports import ImportPart
from annotation.work.services.tokens import Scope
from dpal.reading import sources
from privacy.ledger.models import LedgerEntry
from tests import learning, streaming
from tests.clients import browser_of, program_of
from tests.factories import add_members, make_user, receive_upload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("reads_here")]
ROLES = ("pool", "public_test", "public_start", "charged_start")
SAID = learning.sentences(30)


@pytest.fixture
def project(owner):
    return learning.open_trusted(owner)


def bring(project, texts, role, *, by=None, columns=("text", "label"), labels=learning.CLASSES):
    lines = [",".join(columns), *(f'"{text}",{labels[place % 2]}' for place, text in enumerate(texts))]
    dataset = receive_upload(
        project=project,
        file=File(io.BytesIO("\n".join(lines).encode()), name="rows.csv"),
        name=f"{role}.csv",
        role=role,
        mapping=dict(zip(columns, columns, strict=True)) if role != "pool" else {columns[0]: columns[0]},
        start_epsilon=3.0 if role == "charged_start" else None,
        uploaded_by=by,
        send=False,
    )
    datasets.import_dataset(job_id=dataset.job_id)
    return Dataset.objects.select_related("job").get(pk=dataset.pk)


def assert_refused(dataset, *words):
    assert dataset.state == DatasetState.REFUSED
    assert dataset.job.error.startswith("Nothing was stored: the file shares rows with")
    for word in words:
        assert word in dataset.job.error
    assert not Record.objects.filter(dataset=dataset).exists()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("second", ROLES)
@pytest.mark.parametrize("first", ROLES)
def test_one_file_is_not_taken_in_two_roles(project, first, second):
    """The attack: one file as pool, public test set and public start of one project."""
    assert bring(project, SAID, first).state == DatasetState.READY
    if first == second:
        return
    assert_refused(bring(project, SAID, second), "a row is private or public")


@pytest.mark.parametrize("order", [("pool", "public_test"), ("public_test", "pool")])
@pytest.mark.parametrize(
    "edit",
    [
        str.upper,
        lambda text: f"  {text.replace(' ', '   ')} ",
        lambda text: text.replace(" ", ", ") + "!",
        lambda text: text.title().replace(" ", "\u00a0"),
    ],
)
def test_case_white_space_and_punctuation_hide_nothing(project, order, edit):
    bring(project, SAID, order[0])
    assert_refused(bring(project, list(map(edit, SAID)), order[1]))


@pytest.mark.parametrize("order", [("pool", "public_test"), ("public_test", "pool")])
def test_one_shared_row_among_others_is_enough_and_is_named_to_who_may_read_both(project, owner, order):
    bring(project, SAID, order[0], by=owner)
    others = learning.sentences(30, seed=9)
    others[6] = SAID[17]
    refused = bring(project, others, order[1], by=owner)
    assert_refused(refused, "First rows: 7.")
    assert SAID[17] not in refused.job.error
    others[6] = "quite another sentence"
    assert bring(project, others, order[1], by=owner).state == DatasetState.READY


def test_labels_contributors_and_other_projects_are_no_part_of_a_row(project, owner):
    bring(project, SAID, "public_test")
    other = learning.open_trusted(owner)
    assert bring(other, SAID, "pool").state == DatasetState.READY
    assert_refused(bring(project, SAID, "public_start", labels=learning.CLASSES[::-1]))


def test_the_same_role_may_hold_a_row_twice(project):
    for _ in range(2):
        assert bring(project, SAID, "public_test").state == DatasetState.READY
        assert bring(project, learning.sentences(9, seed=5), "pool").state == DatasetState.READY


def test_a_refused_upload_stands_in_nobodys_way(project):
    bring(project, SAID, "pool")
    bring(project, SAID, "public_test")
    assert bring(project, SAID[:3], "pool").state == DatasetState.READY


class TestBehindAGate:
    """Where a gate stands, a manager who did not bring the pool learns no row of it."""

    @pytest.fixture
    def crowd(self, owner):
        return learning.open_crowd(owner, privacy_unit="record", texts_per_contributor=None)

    @pytest.mark.parametrize("rows", [SAID[:1], ["quite another sentence"]])
    @pytest.mark.parametrize("role", ["public_test", "public_start"])
    def test_a_manager_learns_nothing_of_a_pool_that_somebody_else_brought(self, crowd, owner, role, rows):
        """The second attack: a file of one row, refused where the row is in the pool and taken where it is not."""
        bring(crowd, SAID, "pool", by=owner)
        other = make_user("other")
        with pytest.raises(InvalidUpload, match="role: comparing this file with another person"):
            bring(crowd, rows, role, by=other)
        assert Dataset.objects.count() == 1

    def test_nor_of_one_that_came_while_the_file_was_read(self, crowd, owner, monkeypatch):
        finish = shared_rows.ComparedRows.__init__

        def come_first(comparison, dataset, **options):
            monkeypatch.setattr(shared_rows.ComparedRows, "__init__", finish)
            bring(crowd, SAID, "pool", by=owner)
            finish(comparison, dataset, **options)

        monkeypatch.setattr(shared_rows.ComparedRows, "__init__", come_first)
        refused = bring(crowd, ["quite another sentence"], "public_test", by=make_user("other"))
        assert refused.state == DatasetState.REFUSED
        assert refused.job.error.startswith("role: comparing this file with another person")

    def test_who_brought_the_pool_may_bring_the_rest(self, crowd, owner):
        bring(crowd, SAID, "pool", by=owner)
        assert bring(crowd, learning.sentences(9, seed=5), "public_test", by=owner).state == DatasetState.READY

    def test_public_files_come_from_anybody_before_there_is_a_pool(self, crowd, owner):
        assert bring(crowd, SAID, "public_test", by=make_user("other")).state == DatasetState.READY
        refused = bring(crowd, SAID[:2], "pool", by=owner)
        assert (refused.state, refused.job.error) == (DatasetState.REFUSED, HIDDEN)
        assert refused.uploader_reason.startswith("Nothing was stored: the file shares rows with the public test")
        assert bring(crowd, learning.sentences(9, seed=5), "pool", by=owner).state == DatasetState.READY

    def test_a_pool_that_is_refused_pays_for_no_gate(self, crowd, owner):
        bring(crowd, SAID, "public_test", by=owner)
        before = LedgerEntry.objects.count()
        refused = bring(crowd, SAID, "pool", by=owner)
        assert refused.state == DatasetState.REFUSED
        assert (refused.gate_job_id, LedgerEntry.objects.count()) == (None, before)

    def test_the_outcome_is_told_to_who_brought_the_file_alone(self, crowd, owner):
        bring(crowd, SAID, "pool", by=owner)
        refused = bring(crowd, SAID[:1], "public_test", by=owner)
        engineer, annotator, other = make_user(), make_user(), make_user()
        add_members(crowd, engineer, role="engineer")
        add_members(crowd, annotator)
        add_members(crowd, other, role="manager")
        pages = [
            reverse("annotation:data", args=[crowd.slug]),
            reverse("annotation:dataset", args=[crowd.slug, refused.pk]),
            *(reverse(name, args=[crowd.slug]) for name in ("learner:dashboard", "annotation:budget")),
        ]
        for person in (engineer, annotator, other, owner):
            web = browser_of(person)
            answers = [web.get(page) for page in pages]
            said = ["shares rows" in answer.content.decode() for answer in answers]
            assert said == [person == owner] * 2 + [False] * 2, person
            assert [answer.status_code for answer in answers[:2]] == [200 if person in (other, owner) else 404] * 2
        listing = reverse("api:list_datasets", args=[crowd.slug])
        for person in (other, owner):
            listed = program_of(person, Scope.DATASETS_WRITE).get(listing).json()
            assert ("shares rows" in str(listed)) == (person == owner)
            assert "sees the reason" in listed[0]["job"]["error"]


class TestOtherKinds:
    def test_rows_of_a_table(self, owner):
        columns = [{"name": "amount", "low": 0.0, "high": 9.0}, {"name": "country", "categories": ["NO", "SE"]}]
        project = learning.open_table(owner, columns)
        rows = [[f"{number / 7:.4f}", "NO" if number % 2 else "SE"] for number in range(20)]
        learning.upload(project, rows, ["amount", "country"])
        same = [[f" {float(amount):.5f}", country, "fruit"] for amount, country in rows]
        refused = learning.upload(project, same, ["amount", "country", "label"], role="public_test")
        assert refused.state == DatasetState.REFUSED
        other = [[f"{number / 7 + 0.05:.4f}", "NO", "fruit"] for number in range(20)]
        taken = learning.upload(project, other, ["amount", "country", "label"], role="public_test")
        assert taken.state == DatasetState.READY

    @pytest.mark.parametrize("order", [("pool", "public_test"), ("public_test", "pool")])
    def test_images(self, owner, order):
        project = learning.open_images(owner)
        images = np.random.default_rng(2).integers(0, 256, size=(12, 16))

        def bring_images(chosen, role):
            names = [f"pixel_{number}" for number in range(16)]
            labelled = role != "pool"
            rows = [[*map(str, image), "fruit"] if labelled else list(map(str, image)) for image in chosen]
            return learning.upload(project, rows, [*names, "label"] if labelled else names, role=role)

        assert bring_images(images[:8], order[0]).state == DatasetState.READY
        assert bring_images(images[7:], order[1]).state == DatasetState.REFUSED
        assert bring_images(images[8:], order[1]).state == DatasetState.READY


class TestParts:
    @pytest.fixture(autouse=True)
    def cut_small(self, monkeypatch):
        monkeypatch.setattr(sources, "CHUNK_BYTES", 256)
        monkeypatch.setattr(import_parts, "PART_BYTES", 1500)
        monkeypatch.setattr("celery.canvas.Signature.apply_async", lambda *_, **__: None)

    @pytest.mark.parametrize("order", [("pool", "public_test"), ("public_test", "pool")])
    def test_a_row_in_any_part_is_found(self, project, owner, order, monkeypatch):
        cut = []
        collected = import_parts.collected

        def count(dataset, comparison):
            cut.append(ImportPart.objects.filter(dataset=dataset).count())
            return collected(dataset, comparison)

        monkeypatch.setattr(import_parts, "collected", count)
        many = learning.sentences(400, seed=3)
        bring(project, [many[333]], order[0], by=owner)
        assert_refused(bring(project, many, order[1], by=owner), "First rows: 334.")
        assert min(cut) > 3
        assert bring(project, many[:333], order[1], by=owner).state == DatasetState.READY

    def test_what_became_ready_while_parts_were_read_is_compared_with_too(self, project, owner, monkeypatch):
        read = import_parts.read_parts

        def read_then_bring(dataset, lease, tell):
            done = read(dataset, lease, tell)
            monkeypatch.setattr(import_parts, "read_parts", read)
            monkeypatch.setattr(import_parts, "PART_BYTES", 2**25)
            assert bring(project, [many[200]], "public_test", by=owner).state == DatasetState.READY
            return done

        many = learning.sentences(400, seed=3)
        monkeypatch.setattr(import_parts, "read_parts", read_then_bring)
        assert_refused(bring(project, many, "pool", by=owner), "First rows: 201.")


def test_of_two_uploads_at_once_one_is_refused(project):
    """Both have compared with what stood before either; the one that comes to the lock second sees the first."""
    both = threading.Barrier(2, timeout=120)
    looked = shared_rows.others_of
    seen = threading.local()

    def look(dataset):
        found = looked(dataset)
        if not getattr(seen, "once", False):
            seen.once = True
            list(found)
            both.wait()
        return found

    def run(role):
        try:
            bring(project, SAID, role)
        finally:
            close_old_connections()
            connection.close()

    shared_rows.others_of = look
    try:
        threads = [threading.Thread(target=run, args=(role,)) for role in ("pool", "public_test")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=120)
    finally:
        shared_rows.others_of = looked
    assert sorted(Dataset.objects.values_list("state", flat=True)) == ["ready", "refused"]


class TestStreams:
    @pytest.fixture
    def stream(self, owner):
        return streaming.open_stream(owner)

    def bring_rows(self, project, rows, role="public_test"):
        names = ["amount", "hour", "distance"]
        lines = [[*(str(row[name]) for name in names), streaming.CLASSES[row["amount"] > 0]] for row in rows]
        return learning.upload(project, lines, [*names, "label"], role=role)

    def test_a_posted_record_does_not_stand_in_public_data(self, stream):
        public = streaming.rows(20, seed=2)
        assert self.bring_rows(stream, public).state == DatasetState.READY
        private = streaming.rows(5)
        with pytest.raises(InvalidRecords, match="1 of 6 records were refused") as refused:
            streams.post_records(project=stream, records=[*private[:3], public[4], *private[3:]])
        assert [fault["row"] for fault in refused.value.errors] == [4]
        assert not RecordPost.objects.exists()
        assert streams.post_records(project=stream, records=private).accepted == 5

    @pytest.mark.parametrize("examined", [False, True])
    def test_public_data_share_nothing_with_what_was_posted(self, stream, examined):
        # About one of eight is selected: none of 40 once in a hundred runs, none of so many never.
        private = streaming.rows(300)
        streams.post_records(project=stream, records=private)
        if examined:
            streaming.work_off(stream)
        slot = Record.objects.filter(dataset__project=stream).values_list("row_number", flat=True).first()
        assert (slot is not None) == examined
        # What the stream selected; the rest is dropped, and stands nowhere.
        kept = Record.objects.get(dataset__project=stream, row_number=slot).payload if examined else private[2]
        refused = self.bring_rows(stream, [*streaming.rows(3, seed=8), kept])
        assert refused.state == DatasetState.REFUSED
        assert self.bring_rows(stream, streaming.rows(3, seed=8)).state == DatasetState.READY

    def test_a_post_sent_again_is_answered_as_before(self, stream):
        private = streaming.rows(5)
        first = streams.post_records(project=stream, records=private, key="once")
        self.bring_rows(stream, streaming.rows(3, seed=8))
        again = streams.post_records(project=stream, records=private, key="once")
        assert (again.first_slot, again.repeated) == (first.first_slot, True)


def test_nothing_of_it_is_stored(project, owner):
    bring(project, SAID, "pool", by=owner)
    bring(project, SAID, "public_test", by=owner)
    for job in Job.objects.all():
        assert not any(text in job.error + job.message for text in SAID)
    assert not ImportPart.objects.exists()
