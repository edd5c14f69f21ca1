from pathlib import Path

import numpy as np
import pytest
from django.core.files.storage import default_storage

from annotation.models import Dataset
from learner.errors import ArtifactCorrupt
from learner.models import FeatureMatrix
from learner.pools import features
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(remembered):
    return learning.begin_experts(remembered)


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


def test_image_features_come_from_the_pixel_file():
    project = learning.open_images(make_user())
    images = np.random.default_rng(1).integers(0, 256, size=(7, 4, 4), dtype=np.uint8)
    rows = [[str(value) for value in image.ravel()] for image in images]
    dataset = learning.upload(project, rows, [f"pixel_{n}" for n in range(16)])
    X = features.open_features(dataset)
    grey = images.reshape(7, 2, 2, 2, 2).mean(axis=(2, 4)).reshape(7, 4)
    centred = grey - grey.mean(axis=1, keepdims=True)
    averages = X[:, :4] / np.linalg.norm(X[:, :4], axis=1, keepdims=True)
    np.testing.assert_allclose(averages, centred / np.linalg.norm(centred, axis=1, keepdims=True), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, atol=1e-5)
