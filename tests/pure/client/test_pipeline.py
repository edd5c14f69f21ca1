import json

import numpy as np
import pytest
import skops.io
from sklearn.base import clone

import dpal
import dpal.pipeline
from dpal import errors
from dpal.model import TOLERANCE
from learner.features.image import ImageFeaturizer
from learner.features.static_encoder import StaticEncoder
from learner.features.text import HashingTextFeaturizer
from learner.releases.artifacts.files import write_artifacts
from learner.releases.evaluation import Outcomes
from tests.pure.client.test_model import CARD, COLUMNS, KEY, LEDGER, PRIVACY, PROVENANCE, SAID, SIGNER, model_for
from tests.pure.learner.evaluations.test_thresholds import outcomes
from tests.transcripts import transcript_of

TRUSTED = ["dpal.pipeline.Features"]
PIXELS = ImageFeaturizer(4, 4, centered=True)
CASES = {
    "hashed": (HashingTextFeaturizer(32), SAID),
    "listed words": (HashingTextFeaturizer(32, normalizer="L3"), SAID),
    "table of vectors": (StaticEncoder(n_features=16), SAID),
    "rows": (COLUMNS, [{"age": 3.0, "kind": "a"}, {"age": 97.0, "kind": "b"}, {}]),
    "images": (PIXELS, np.random.default_rng(3).integers(0, 256, size=(9, 4, 4), dtype=np.uint8)),
}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DPAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DPAL_CONFIG", str(tmp_path / "config"))


def write(folder, featurizer, found: Outcomes | None = None, classes: int = 3):
    model = model_for(featurizer, classes)
    write_artifacts(
        folder,
        model=model,
        featurizer=featurizer,
        card=CARD,
        privacy=PRIVACY,
        provenance=PROVENANCE | {"ledger": LEDGER},
        signer=SIGNER,
        outcomes=found,
        transcript=transcript_of(model),
    )
    return dpal.open_folder(folder, public_key=KEY)


@pytest.mark.parametrize("name", CASES)
def test_raw_records_become_the_same_predictions(tmp_path, name):
    featurizer, records = CASES[name]
    model = write(tmp_path / "release", featurizer)
    pipeline = model.pipeline()
    assert pipeline.predict(records).tolist() == model.predict(records).tolist()
    np.testing.assert_allclose(pipeline.predict_proba(records), model.predict_proba(records), rtol=0, atol=1e-9)
    assert clone(pipeline[:1]).transform(records).shape == (len(records), featurizer.dimension)
    path = tmp_path / "release" / "pipeline.skops"
    assert skops.io.get_untrusted_types(file=path) == TRUSTED
    told = json.loads((tmp_path / "release" / "samples.json").read_text())
    raw = np.array(told["records"], dtype=np.uint8) if name == "images" else told["records"]
    found = skops.io.load(path, trusted=TRUSTED).predict_proba(raw)
    np.testing.assert_allclose(found, told["probabilities"], rtol=0, atol=1e-9)


def test_a_model_says_only_what_it_is_sure_of(tmp_path):
    found = outcomes(2000, seed=4, digits=6)
    model = write(tmp_path / "release", HashingTextFeaturizer(32), found)
    told = json.loads((tmp_path / "release" / "thresholds.json").read_text())
    assert (told["examples"], told["datasets"]) == (2000, ["public"])
    shares = model.predict_proba(SAID)
    for wanted, place in ((0.7, 0), (0.8, 0), (0.9, 1), (0.95, 2)):
        least = np.array([(told["classes"][name][place] or {"threshold": 2})["threshold"] for name in model.classes])
        leaders = shares.argmax(axis=1)
        expected = np.where(shares.max(axis=1) >= least[leaders], np.array(model.classes)[leaders], "").tolist()
        assert model.predict_sure(SAID, wanted).tolist() == expected
        assert model.predict_sure([], wanted).shape == (0,)
    assert 0 < sum(map(bool, model.predict_sure(SAID, 0.95))) < len(SAID)
    with pytest.raises(errors.NotFitting, match=r"other precisions: 0.8, 0.9, 0.95, 0.99\."):
        model.predict_sure(SAID, 0.999)
    without = write(tmp_path / "without", HashingTextFeaturizer(32))
    with pytest.raises(errors.NotFitting, match="for want of public test sets"):
        without.predict_sure(SAID, 0.9)


def test_a_model_abstains_below_the_threshold_of_a_secret_sample(tmp_path):
    model = write(tmp_path / "release", HashingTextFeaturizer(32))
    with pytest.raises(errors.NotFitting, match="no threshold to abstain by"):
        model.abstain(SAID)
    shares, path = model.predict_proba(SAID), tmp_path / "release" / "thresholds.json"
    least = float(np.median(shares.max(axis=1)))
    found = [{"precision": 0.9, "threshold": least}, {"precision": 0.99, "threshold": None}]
    path.write_text(json.dumps({**json.loads(path.read_text()), "abstain": found}))
    is_sure = shares.max(axis=1) >= least - TOLERANCE
    expected = np.where(is_sure, np.array(model.classes)[shares.argmax(axis=1)], "").tolist()
    assert "" in expected
    assert model.abstain(SAID, 0.9).tolist() == model.abstain(SAID, 0.85).tolist() == expected
    assert model.abstain([], 0.9).shape == (0,)
    with pytest.raises(errors.NotFitting, match=r"other shares of right answers: 0.9\."):
        model.abstain(SAID)
