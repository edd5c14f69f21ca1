"""The module that predicts in a browser or Node says what the client says."""

import json
import random
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from tokenizers import normalizers, pre_tokenizers

from dpal.features.normal import Words
from dpal.model import Model
from tests.pure.client.features.test_featurizers import FEATURIZERS, write
from tests.pure.learner.releases.artifacts.test_files import SIGNER

MODULE = Path(__file__).parents[4] / "learner/static/learner/predict.mjs"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="Node is not installed")
PREDICT = """
const model = await module.load(async (name) => fs.readFileSync(`${given.folder}/${name}`), given);
write(model.predict(given.texts));
"""
CHARACTERS = """
write(given.characters.map((one) => [module.uncased(one), module.isPunctuation(one), module.normal(one, "L1")]));
"""
TEXTS = [
    "",
    "What's THIS, a pear?",
    "Straße ẞ ΣΊΣΥΦΟΣ ﬁne İstanbul ıı",
    "日本語 text 12 34 Mondays",
    "x" * 300,
    "naïve café — “quoted” #tag @x",
]


def run(program: str, **given):
    setup = (
        f'import fs from "node:fs"; const module = await import({json.dumps(MODULE.as_uri())});'
        'const given = JSON.parse(fs.readFileSync(0, "utf8"));'
        "const write = (found) => process.stdout.write(JSON.stringify(found));"
    )
    command = [str(NODE), "--input-type=module", "-e", setup + program]
    return subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)


def made_up(number: int) -> list[str]:
    draw = random.Random(7)
    known = [chr(code) for code in (*range(32, 0x3000), *range(0x1F300, 0x1F700)) if is_known(code)]
    return ["".join(draw.choices(known, k=draw.randint(1, 40))) for _each in range(number)]


def is_known(code: int) -> bool:
    # Characters younger than this Python's Unicode are no marks and no capitals to it.
    return unicodedata.category(chr(code)) not in ("Cn", "Cs")


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", ["hashed phrases", "hashed L0", "hashed L2", "hashed L5", "vectors", "vectors L3"])
def test_texts_are_predicted_as_the_client_does(tmp_path, name, classes):
    files = write(tmp_path / "release", FEATURIZERS[name], classes=classes)
    texts = TEXTS + made_up(200)
    labels, shares = Model("p", 1, files).predict_both(texts)
    done = run(PREDICT, folder=str(tmp_path / "release"), publicKey=SIGNER.public_key, texts=texts)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["label"] for one in found] == labels.tolist()
    np.testing.assert_allclose([one["probabilities"] for one in found], shares, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "said"), [("weights.json", "differs from what was signed"), ("manifest.json", "did not sign")]
)
def test_a_changed_file_is_refused(tmp_path, name, said):
    files = write(tmp_path / "release", FEATURIZERS["hashed L2"])
    files[name].write_bytes(files[name].read_bytes() + b" ")
    done = run(PREDICT, folder=str(tmp_path / "release"), publicKey=SIGNER.public_key, texts=["a"])
    assert done.returncode != 0
    assert said in done.stderr


def test_every_character_is_read_as_the_sites_libraries_do():
    characters = [chr(code) for code in range(sys.maxunicode + 1) if is_known(code)]
    done = run(CHARACTERS, characters=characters)
    assert done.returncode == 0, done.stderr
    uncased, cut = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    words = b" ".join(Words("L1").flat(characters)).decode().split("\0")
    for character, normal, (one, is_punctuation, rule) in zip(characters, words, json.loads(done.stdout), strict=False):
        assert one == uncased.normalize_str(character), hex(ord(character))
        parts = len(cut.pre_tokenize_str(f"a{character}b"))
        assert is_punctuation == (parts == 3), hex(ord(character))
        assert rule == normal.strip(), hex(ord(character))
