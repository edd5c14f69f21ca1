import pytest

from annotation.choices.presets import PRESETS
from annotation.models import Features
from annotation.projects.forms.opening import ProjectForm
from learner.features.encoder import MultilingualEncoder, SentenceEncoder
from learner.pools import features
from tests import learning
from tests.counting import new_counter
from tests.factories import make_user


def offered(preset):
    return [key for key, _ in ProjectForm(preset=PRESETS[preset]).fields["features"].choices]


def test_texts_are_offered_the_encoders():
    many = [] if MultilingualEncoder.missing() else [MultilingualEncoder.name]
    always = [Features.STANDARD, "planned", "static_encoder", "encoder", *many]
    assert offered("voice-crowd") == always
    assert offered("pool-experts") == always


@pytest.mark.django_db(transaction=True)
def test_a_live_project_encodes_its_texts(tmp_path, settings):
    settings.LEDGER_COUNTER_PATH = new_counter(tmp_path)
    project = learning.open_trusted(make_user(), features="encoder", feature_dimension=4)
    dataset = learning.upload(project, [["play some jazz"], ["lights off"]], ["text"])
    X = features.open_features(dataset)
    expected = SentenceEncoder(n_features=4).transform(["play some jazz", "lights off"])
    assert (expected == X).all()
    assert dataset.feature_matrices.get().version.startswith("sentence_encoder-")
