import numpy as np
import pytest

from learner.features.text import HashingTextFeaturizer
from learner.models import FeatureMatrix, Round
from learner.pools import configuration, features
from learner.pools.records import pool_datasets
from learner.rounds.services import loop, training
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


class NextVersion(HashingTextFeaturizer):
    """The same shape, other numbers: what a later release of the software might bring."""

    @property
    def version(self) -> str:
        return super().version + "-next"

    def raw_rows(self, batch):
        return -super().raw_rows(batch)


def upgrade(monkeypatch) -> None:
    def featurizer_of(project):
        return NextVersion(project.feature_dimension, normalizer=project.normalizer or "L1")

    for module in (configuration, features, loop, training):
        if hasattr(module, "featurizer_of"):
            monkeypatch.setattr(module, "featurizer_of", featurizer_of)


def test_an_upload_made_before_is_read_in_the_new_version_too(monkeypatch):
    """Two uploads, the featuriser changed between them: both come in the new version, none from the old file."""
    project = learning.open_trusted(make_user())
    learning.upload(project, [[text] for text in learning.sentences(20)], ["text"])
    (first,) = pool_datasets(project)
    old = np.array(features.open_features(first))
    upgrade(monkeypatch)
    learning.upload(project, [[text] for text in learning.sentences(10, seed=3)], ["text"])
    stacked = features.stacked_features(list(pool_datasets(project)), dimension=16)
    assert stacked.shape == (30, 16)
    assert np.array_equal(stacked[np.arange(20)], -old)
    files = FeatureMatrix.objects.filter(dataset=first).order_by("pk")
    assert [row.version.endswith("-next") for row in files] == [False, True]
    assert len({row.file.name for row in files}) == 2
    assert np.array_equal(np.load(features._path_of(files[0].file.name)), old)


def test_a_running_project_goes_on_in_the_new_version_alone(monkeypatch):
    """Rounds and trainings after the change read one version; the model says which one it takes."""
    project = learning.open_trusted(make_user(), selection="random")
    learning.fill_trusted(project)
    person = make_user()
    first = learning.run_to_release(project, person, version=1)
    upgrade(monkeypatch)
    read = []
    real = features.open_verified

    def remember(path, sha256):
        read.append(path.name)
        return real(path, sha256)

    monkeypatch.setattr(features, "open_verified", remember)
    second = learning.run_to_release(project, person, version=2)
    assert Round.objects.count() == 2
    assert read
    assert all(name.endswith("-next.npy") for name in read)
    assert (first.version, second.version) == (1, 2)
