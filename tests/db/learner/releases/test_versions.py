"""Files checked against their digests, releases taken back, late test sets, and features made once."""

from pathlib import Path

import numpy as np
import pytest
from django.core.files.storage import default_storage
from django.db import IntegrityError, transaction

from annotation.models import Dataset
from learner import tasks
from learner.errors import ArtifactCorrupt, ReasonMissing
from learner.models import Endorsement, Evaluation, FeatureMatrix, ModelRelease, Round
from learner.pools.services import features
from learner.releases.services import versions
from learner.rounds.services import loop
from learner.selectors import find_release, latest_release, newest_release, next_strategy
from learner.work.services.dispatch import EVALUATE_RELEASE_TASK
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(remembered, request):
    return learning.begin_experts(remembered, released="release" in request.fixturenames)


@pytest.fixture
def release(project) -> ModelRelease:
    return project.releases.get()


def test_files_open_with_the_bytes_that_were_released(release):
    assert set(release.digests) == {
        "model.skops",
        "model.onnx",
        "model.safetensors",
        "pipeline.skops",
        "thresholds.json",
        "licences.md",
        "weights.json",
        "features.json",
        "samples.json",
        "card.md",
        "privacy.json",
        "manifest.json",
        "manifest.sig",
        "model.sig",
    }
    with versions.open_file(release=release, name="card.md") as file:
        card = file.read().decode()
    assert "20" in card
    assert "0-differential privacy" not in card


def test_a_changed_file_is_not_handed_out(release):
    path = Path(default_storage.path(release.folder)) / "weights.json"
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)
    with pytest.raises(ArtifactCorrupt, match="digest"):
        versions.open_file(release=release, name="weights.json")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["../../../etc/passwd", "absent.json", ""])
def test_only_listed_files_open(release, name):
    with pytest.raises(ArtifactCorrupt):
        versions.open_file(release=release, name=name)


def test_a_missing_file_is_said_to_be_corrupt(release):
    (Path(default_storage.path(release.folder)) / "card.md").unlink()
    with pytest.raises(ArtifactCorrupt):
        versions.open_file(release=release, name="card.md")


def test_a_retired_release_is_no_longer_the_latest_and_scores_nothing(project, release):
    with pytest.raises(ReasonMissing):
        versions.retire_release(release=release, reason="  ")
    assert next_strategy(project) == "top_c"
    versions.retire_release(release=release, reason="wrong guideline")
    assert latest_release(project) is newest_release(project) is None
    assert next_strategy(project) == "random"
    learning.work_off(project)
    assert Round.objects.order_by("number").last().model is None


def test_a_release_that_a_constant_beats_is_the_latest_by_a_managers_word_alone(project, release):
    manager = make_user()
    measured = release.evaluations.get()
    assert measured.constant_correct == measured.measures["constant"]["correct"] >= 30
    learning.beaten_on_another_set(release)
    assert latest_release(project) is None
    assert find_release(project, "latest") is None
    assert find_release(project, "1") == newest_release(project) == release
    # What the project itself goes on from is not offered to anybody.
    assert next_strategy(project) == "top_c"
    with pytest.raises(ReasonMissing):
        versions.endorse_release(release=release, reason=" ", actor=manager)
    word = versions.endorse_release(release=release, reason="the test set is old", actor=manager)
    assert versions.endorse_release(release=release, reason="again", actor=manager) == word
    assert latest_release(project) == release


def test_an_evaluation_cannot_claim_more_than_it_counted(release):
    dataset = Dataset.objects.get(project=release.project, role="public_test")
    with pytest.raises(IntegrityError, match="learner_evaluation_counts"), transaction.atomic():
        Evaluation.objects.create(release=release, dataset=dataset, examples=60, correct=1, constant_correct=61)


def test_a_managers_word_has_a_reason(release):
    release.endorsement.delete()
    with pytest.raises(IntegrityError, match="learner_endorsement_has_reason"), transaction.atomic():
        Endorsement.objects.create(release=release, reason="", endorsed_by=make_user())


def test_a_test_set_that_comes_later_is_measured_too(project, release, monkeypatch):
    rows = [[text, learning.CLASSES[learning.truth_of(text)]] for text in learning.sentences(10, seed=9)]
    learning.upload(project, rows, ["text", "label"], role="public_test")
    assert Evaluation.objects.count() == 1
    sent = []
    # The broker of the tests holds what nobody takes.
    monkeypatch.setattr(loop.broker, "may_have_lost", bool)
    monkeypatch.setattr(loop, "send_on_commit", lambda task, **ids: sent.append((task, ids)))
    loop.advance_projects()
    measure = (EVALUATE_RELEASE_TASK, {"release_id": release.pk})
    assert measure in sent
    for _ in range(2):
        tasks.evaluate_release_task(**measure[1])
    sent.clear()
    loop.advance_projects()
    assert measure not in sent
    assert list(Evaluation.objects.order_by("pk").values_list("examples", flat=True)) == [60, 10]


def test_accuracy_is_what_the_released_weights_get_right(project, release):
    tested = Dataset.objects.get(project=project, role="public_test")
    X = features.open_features(tested)
    scores = X @ np.array(release.weights["coef"][0]) + release.weights["intercept"][0]
    truth = np.array(list(tested.records.order_by("row_number").values_list("label", flat=True)))
    assert release.evaluations.get().correct == int(((scores > 0) == truth).sum())


def test_features_are_written_once_and_checked_when_opened(project):
    dataset = Dataset.objects.get(project=project, role="pool")
    first = features.ensure_matrix(dataset)
    assert features.ensure_matrix(dataset) == first
    assert FeatureMatrix.objects.filter(dataset=dataset).count() == 1
    assert (first.rows, first.dimension) == (80, 16)
    path = Path(default_storage.path(first.file.name))
    body = bytearray(path.read_bytes())
    body[-1] ^= 1
    path.write_bytes(body)
    features.open_verified.cache_clear()
    with pytest.raises(ArtifactCorrupt):
        features.open_features(dataset)


def test_a_gap_in_the_row_numbers_is_found(project):
    dataset = Dataset.objects.get(project=project, role="pool")
    dataset.records.filter(row_number=5).delete()
    with pytest.raises(ArtifactCorrupt, match="row 5"):
        features.ensure_matrix(dataset)


def test_stacked_files_read_as_one_matrix():
    parts = [np.arange(6, dtype=np.float32).reshape(3, 2), 10 + np.arange(4, dtype=np.float32).reshape(2, 2)]
    whole = np.concatenate(parts)
    stacked = features.StackedMatrix(parts, dimension=2)
    assert (len(stacked), stacked.shape) == (5, (5, 2))
    rows = np.array([4, 0, 3, 2])
    np.testing.assert_array_equal(stacked[rows], whole[rows])
    np.testing.assert_array_equal(stacked[1:4], whole[1:4])


def test_image_features_come_from_the_pixel_file():
    project = learning.open_images(make_user())
    images = np.random.default_rng(1).integers(0, 256, size=(7, 4, 4), dtype=np.uint8)
    rows = [[str(value) for value in image.ravel()] for image in images]
    dataset = learning.upload(project, rows, [f"pixel_{n}" for n in range(16)])
    X = features.open_features(dataset)
    grey = images.reshape(7, 2, 2, 2, 2).mean(axis=(2, 4)).reshape(7, 4)
    centred = grey - grey.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(X, centred / np.linalg.norm(centred, axis=1, keepdims=True), atol=1e-5)
