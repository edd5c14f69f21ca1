"""What a new project may choose its features from, with and without the extra that carries an encoder."""

import importlib

import pytest

from annotation.choices.presets import PRESETS
from annotation.models import Features
from annotation.projects.forms.opening import ProjectForm
from annotation.projects.forms.pool import PoolProjectForm
from learner.features import encoder
from learner.features.encoder import PublicEncoder
from learner.pools import features
from tests import learning
from tests.counting import new_counter
from tests.factories import make_user
from tests.pure.learner.features.encoder_folder import write_package


def offered(preset):
    return [key for key, _ in ProjectForm(preset=PRESETS[preset]).fields["features"].choices]


@pytest.mark.parametrize("installed", [False, True])
def test_an_encoder_is_offered_where_it_is_installed(monkeypatch, installed):
    monkeypatch.setattr(PublicEncoder, "missing", lambda: "" if installed else "is not installed")
    encoders = ["encoder"] if installed else []
    always = [Features.STANDARD, "planned", "static_encoder"]
    assert offered("voice-crowd") == [*always, *encoders]
    assert offered("pool-experts") == [*always, *encoders, "principal"]


def test_only_a_trusted_project_is_asked_what_directions_may_cost():
    chosen = {"data_kind": "image", "features": "principal"}
    assert "features_epsilon" not in PoolProjectForm(preset=PRESETS["voice-crowd"], initial=chosen).fields
    assert "features_epsilon" in PoolProjectForm(preset=PRESETS["pool-experts"], initial=chosen).fields


@pytest.mark.django_db(transaction=True)
def test_a_live_project_encodes_its_texts(tmp_path, monkeypatch, settings):
    settings.LEDGER_COUNTER_PATH = new_counter(tmp_path)
    write_package(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    packages = ("tiny_encoder", "tokenizers", "safetensors")
    monkeypatch.setattr(encoder, "ENCODER_PACKAGES", packages)
    monkeypatch.setitem(encoder.PACKAGES, "all-minilm-l6-v2", "tiny_encoder")
    project = learning.open_trusted(make_user(), features="encoder", feature_dimension=4)
    dataset = learning.upload(project, [["play some jazz"], ["lights off"]], ["text"])
    X = features.open_features(dataset)
    expected = encoder.SentenceEncoder(n_features=4).transform(["play some jazz", "lights off"])
    assert (expected == X).all()
    assert dataset.feature_matrices.get().version.startswith("sentence_encoder-")
