import importlib
import json

import numpy as np
import pandas as pd
import pytest

from dpal import errors
from dpal.manifest import MANIFEST, SIGNATURE, verify_folder
from dpal.mlflow_model import write_folder
from dpal.pushing import push
from dpal.releases import Fetched, Wheel
from learner.releases.artifacts.signatures import Signer
from tests.pure.client.test_model import KEY, SAID, TEXTS, write

WHEEL = Wheel("dpal_client-0.1.0-py3-none-any.whl", b"a wheel")
OTHER = Signer.from_secret("somebody else's secret, which is long enough too").public_key


def fetched(folder) -> Fetched:
    manifest, files = verify_folder(folder, public_key=KEY)
    return Fetched(manifest, files, {name: folder / name for name in (MANIFEST, SIGNATURE)})


def loaded(folder):
    """Load a folder as MLflow does: by what its MLmodel names."""
    said = json.loads((folder / "MLmodel").read_text())["flavors"]["python_function"]
    return importlib.import_module(said["loader_module"])._load_pyfunc(str(folder / said["data"]))


def test_a_folder_predicts_what_the_release_does(tmp_path):
    theirs = write(tmp_path / "release", classes=4)
    model = write_folder(fetched(tmp_path / "release"), tmp_path / "made", public_key=KEY, wheel=WHEEL)
    ours = loaded(tmp_path / "made")
    expected = theirs.predict(TEXTS.transform(SAID))
    assert len(set(expected)) > 1
    for records in (SAID, pd.DataFrame({"text": SAID}), pd.DataFrame({"said": SAID})):
        assert ours.predict(records).tolist() == expected
    shares = ours.predict(pd.DataFrame({"text": SAID}), params={"probabilities": True})
    np.testing.assert_allclose(shares, model.predict_proba(SAID), rtol=0, atol=1e-12)
    with pytest.raises(errors.NotFitting, match="call their column text"):
        ours.predict(pd.DataFrame({"a": SAID, "b": SAID}))
    told = json.loads((tmp_path / "made" / "MLmodel").read_text())
    assert json.loads(told["signature"]["inputs"]) == [{"type": "string", "required": True}]
    assert told["metadata"]["dpal.guarantee.0"] == "the pool of voice queries: " + str(model.guarantee.accounts[0])
    assert (tmp_path / "made" / WHEEL.name).read_bytes() == WHEEL.content
    assert (tmp_path / "made" / "requirements.txt").read_text() == f"mlflow>=3,<4\n./{WHEEL.name}\n"


def test_a_changed_folder_is_refused(tmp_path, monkeypatch):
    write(tmp_path / "release")
    write_folder(fetched(tmp_path / "release"), tmp_path / "made", public_key=KEY, wheel=WHEEL)
    with pytest.raises(errors.DpalError, match="made is there already"):
        write_folder(fetched(tmp_path / "release"), tmp_path / "made", public_key=KEY, wheel=WHEEL)
    # Whoever trusts a key of the site need not trust the one in the folder.
    monkeypatch.setenv("DPAL_PUBLIC_KEY", OTHER)
    with pytest.raises(errors.NotGenuine, match="another key"):
        loaded(tmp_path / "made")
    monkeypatch.delenv("DPAL_PUBLIC_KEY")
    loaded(tmp_path / "made")
    card = tmp_path / "made" / "release" / "card.md"
    card.write_text("epsilon 0")
    with pytest.raises(errors.NotGenuine, match=r"card\.md of .* differs from what was signed"):
        loaded(tmp_path / "made")


def test_without_mlflow_one_sentence_says_what_to_install(tmp_path):
    write(tmp_path / "release")
    with pytest.raises(errors.DpalError, match="pip install 'mlflow-skinny>=3,<4'"):
        push(fetched(tmp_path / "release"), "mlflow://127.0.0.1:9/name", public_key=KEY, wheel=WHEEL)
