import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils import murmurhash3_32

from dpal.errors import NotFitting, NotGenuine
from dpal.features import KINDS, read_featurizer
from dpal.features.hashing import murmur3
from dpal.features.normal import RULES, Words
from dpal.features.table import CategoricalColumn, NumericColumn
from dpal.model import Model
from learner.features.base import Featurizer
from learner.features.image import ImageFeaturizer
from learner.features.static_encoder import StaticEncoder
from learner.features.tabular import TabularFeaturizer
from learner.features.text import HashingTextFeaturizer
from learner.linear_model import LinearModel
from learner.releases.artifacts.files import write_artifacts
from privacy.gate.normalizers import Normalizer, normalize_text
from tests.pure.learner.releases.artifacts.test_files import CARD, PRIVACY, PROVENANCE, SIGNER
from tests.transcripts import transcript_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(
    [
        "play jazz on monday 7:30",
        "What's\x00 THIS\u2019 \x85",
        "two 3 4 Mondays",
        "Straße ﬁ １２",
        "\u1e9e \u0130 \u0345",
        "a\x1fb",
    ]
)
NOWHERE = PROVENANCE | {"ledger": []}
PIXELS = ImageFeaturizer(6, 5, pooled=(3, 2), centered=True)
COLOURS = ImageFeaturizer(6, 5, pooled=(3, 2), centered=True, hues=(2, 1))
COLUMNS = [
    NumericColumn("age", 0, 100, "unit", missing=30),
    NumericColumn("sum", -5, 5),
    CategoricalColumn("kind", ["a", "b", "1"]),
]
FEATURIZERS = {
    "hashed": HashingTextFeaturizer(32),
    "hashed phrases": HashingTextFeaturizer(64, ngram_range=(1, 3), norm_bound=2.5),
    "hashed pairs": HashingTextFeaturizer(64, ngram_range=(2, 2)),
    **{f"hashed {rule}": HashingTextFeaturizer(32, normalizer=rule) for rule in Normalizer},
    "vectors": StaticEncoder(n_features=16),
    "vectors L3": StaticEncoder(n_features=256, normalizer="L3"),
    "table": TabularFeaturizer(COLUMNS),
    "table unit": TabularFeaturizer(COLUMNS, row_scaling="unit", norm_bound=0.5),
    "pixels": ImageFeaturizer(6, 5, row_scaling="bounded"),
    "pooled": PIXELS,
    "projected": ImageFeaturizer(6, 5, projection=(4, 7), centered=True),
    "pixels in colour": ImageFeaturizer(6, 5, row_scaling="bounded", hues=(2, 1)),
    "pooled in colour": COLOURS,
    "projected in colour": ImageFeaturizer(6, 5, projection=(4, 7), centered=True, hues=(2, 1)),
}


def write(folder: Path, featurizer: Featurizer, *, classes: int = 3) -> dict[str, Path]:
    rng = np.random.default_rng(5)
    outputs = 1 if classes == 2 else classes
    model = LinearModel(
        rng.normal(size=(outputs, featurizer.dimension)), rng.normal(size=outputs), tuple("abcdef"[:classes])
    )
    write_artifacts(
        folder,
        model=model,
        featurizer=featurizer,
        card=CARD,
        privacy=PRIVACY,
        provenance=NOWHERE,
        signer=SIGNER,
        transcript=transcript_of(model),
    )
    return {path.name: path for path in folder.iterdir()}


def same_rows(ours, theirs, records) -> None:
    np.testing.assert_array_equal(ours.transform(records), theirs.transform(records), strict=True)


@pytest.mark.parametrize("rule", RULES)
@given(texts=st.lists(TEXT, min_size=1, max_size=8))
def test_words_are_those_that_the_site_counts(rule, texts):
    files = FEATURIZERS[f"hashed {rule}"].attachments()
    words = WORDS.get(rule) or WORDS.setdefault(rule, words_of(rule, files))
    found = b" ".join(words.flat(texts)).decode().split("\0")[:-1]
    assert [" ".join(text.split()) for text in found] == [normalize_text(text, Normalizer(rule)) for text in texts]


WORDS: dict[str, Words] = {}


def words_of(rule: str, files: dict[str, bytes]) -> Words:
    if not files:
        return Words(rule)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "words.json"
        path.write_bytes(files["words.json"])
        return Words.from_release(rule, {"words.json": path})


@given(words=st.lists(st.binary(max_size=30), min_size=1, max_size=20))
@settings(max_examples=200, deadline=None)
def test_hashes_are_murmur3(words):
    assert murmur3(words).tolist() == [murmurhash3_32(word, seed=0) for word in words]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", [name for name in FEATURIZERS if name.startswith(("hashed", "vectors"))])
def test_texts_become_the_same_rows(tmp_path, name):
    theirs = FEATURIZERS[name]
    ours = read_featurizer(write(tmp_path / "release", theirs))
    same_rows(
        ours,
        theirs,
        ["", None, "play  jazz, play JAZZ", "x" * 300, "naïve café 東京 ok", "three\0words here", "7 8 nine"],
    )

    @given(texts=st.lists(TEXT, min_size=1, max_size=8))
    def agree(texts):
        same_rows(ours, theirs, texts)

    agree()


VALUE = (
    st.none() | st.floats() | st.integers(-(10**400), 10**400) | st.sampled_from(["a", "b", "1", "7", " ", "x", True])
)


@pytest.mark.parametrize("name", ["table", "table unit"])
def test_rows_become_the_same_rows(tmp_path, name):
    theirs = FEATURIZERS[name]
    ours = read_featurizer(write(tmp_path / "release", theirs))

    @given(
        rows=st.lists(st.dictionaries(st.sampled_from(["age", "sum", "kind", "other"]), VALUE), min_size=1, max_size=6)
    )
    def agree(rows):
        same_rows(ours, theirs, rows)

    agree()
    columns = {"age": [1, 2], "kind": ["a", None]}
    same_rows(ours, theirs, columns)
    with pytest.raises(NotFitting, match="equally long"):
        ours.transform({"age": [1], "kind": ["a", "b"]})
    with pytest.raises(NotFitting, match="age, sum, kind"):
        ours.transform(["a text"])


@pytest.mark.parametrize("name", ["pixels", "pooled", "projected"])
def test_images_become_the_same_rows(tmp_path, name):
    theirs = FEATURIZERS[name]
    ours = read_featurizer(write(tmp_path / "release", theirs))
    images = np.random.default_rng(4).integers(0, 256, size=(50, 6, 5), dtype=np.uint8)
    images[0], images[1] = 0, 255
    same_rows(ours, theirs, images)
    with pytest.raises(NotFitting, match=r"\(n, 6, 5\), got uint8 of shape \(50, 5, 6\)"):
        ours.transform(images.transpose(0, 2, 1))


@pytest.mark.parametrize("name", [name for name in FEATURIZERS if name.endswith("in colour")])
def test_images_in_colour_become_the_same_rows(tmp_path, name):
    theirs = FEATURIZERS[name]
    ours = read_featurizer(write(tmp_path / "release", theirs))
    images = np.random.default_rng(4).integers(0, 256, size=(50, 6, 5, 3), dtype=np.uint8)
    images[0], images[1] = 0, 255
    same_rows(ours, theirs, images)
    with pytest.raises(NotFitting, match=r"\(n, 6, 5, 3\), got uint8 of shape \(50, 6, 5\)"):
        ours.transform(images[..., 0])


def test_a_decimal_comma_is_no_missing_number():
    with pytest.raises(NotFitting, match="Column age has a decimal comma"):
        NumericColumn("age", 0, 100).encode(["30", "30,5"])


def test_every_kind_of_features_is_here_or_refused(tmp_path):
    # What a network makes is in test_sentences.py; a model of spans has its own tables.
    assert {one.kind for one in FEATURIZERS.values()} | {"sentence_encoder", "span_words"} == set(KINDS)
    files = write(tmp_path / "release", FEATURIZERS["hashed"])
    described = json.loads(files["features.json"].read_text())
    files["features.json"].write_text(json.dumps(described | {"kind": "dreams"}))
    with pytest.raises(NotGenuine, match="'dreams', which this version of dpal-client cannot do"):
        Model("p", 1, files)
