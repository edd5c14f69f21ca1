import base64
import gzip
import hashlib
import json
import stat
import tomllib
import zipfile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import dpal
from dpal import errors, settings, tables
from dpal.command_line import main, recomputation
from dpal.features.table import CategoricalColumn, NumericColumn
from dpal.manifest import read_manifest, verify_folder
from dpal_site.embedded.servers import REPOSITORY
from learner.features.image import ImageFeaturizer
from learner.features.tabular import TabularFeaturizer
from learner.features.text import HashingTextFeaturizer
from learner.linear_model import LinearModel
from learner.releases.artifacts.files import json_bytes, write_artifacts
from learner.releases.artifacts.signatures import Signer
from privacy.ledger.auditor import merkle, notes
from tests.pure.learner.releases.artifacts.test_files import CARD, PRIVACY, PROVENANCE, SIGNER
from tests.transcripts import transcript_of

KEY = SIGNER.public_key
FORGER = Signer.from_secret("somebody else's secret, which is long enough too")
TEXTS = HashingTextFeaturizer(32)
COLUMNS = TabularFeaturizer([NumericColumn("age", 0, 100), CategoricalColumn("kind", ["a", "b"])])
SAID = ["play jazz", "What's this?", "", "stop stop stop", *(f"word {number}" for number in range(200))]

HASHES = [hashlib.sha256(bytes([number])).hexdigest() for number in range(7)]
LEAVES = [merkle.leaf_hash(bytes.fromhex(each)) for each in HASHES]


def place_of(signer=SIGNER, sequences=(1, 4, 7), size=7, **changes) -> dict[str, Any]:
    checkpoint = notes.Checkpoint("dpal-1/project:voice:pool", size, merkle.root_of(LEAVES[:size]))
    entries = [
        {
            "sequence": number,
            "hash": HASHES[number - 1],
            "proof": [base64.b64encode(one).decode() for one in merkle.inclusion_proof(LEAVES[:size], number - 1)],
        }
        | changes
        for number in sequences
    ]
    return {"protects": "the pool", "checkpoint": notes.sign_checkpoint(checkpoint, signer.key), "entries": entries}


LEDGER = [place_of()]


def model_for(featurizer, classes: int, multiclass: str = "one_vs_rest") -> LinearModel:
    rng = np.random.default_rng(classes)
    outputs = 1 if classes == 2 else classes
    coef = rng.normal(size=(outputs, featurizer.dimension)) * 30
    return LinearModel(coef, rng.normal(size=outputs), tuple("zyxwv"[:classes]), multiclass)


def write(
    folder, featurizer=TEXTS, classes: int = 2, multiclass: str = "one_vs_rest", privacy=PRIVACY, ledger=LEDGER
) -> LinearModel:
    model = model_for(featurizer, classes, multiclass)
    said = {"card": CARD, "privacy": privacy, "provenance": PROVENANCE | {"ledger": ledger}}
    write_artifacts(folder, model=model, featurizer=featurizer, signer=SIGNER, transcript=transcript_of(model), **said)
    return model


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DPAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DPAL_CONFIG", str(tmp_path / "config"))
    monkeypatch.delenv("DPAL_SITE", raising=False)
    return tmp_path


@pytest.mark.parametrize(("classes", "multiclass"), [(2, "one_vs_rest"), (4, "one_vs_rest"), (4, "softmax")])
def test_a_model_predicts_what_the_site_does(tmp_path, classes, multiclass):
    theirs = write(tmp_path / "release", classes=classes, multiclass=multiclass)
    ours = dpal.open_folder(tmp_path / "release", public_key=KEY)
    rows = TEXTS.transform(SAID)
    assert ours.classes == theirs.classes
    assert ours.predict(SAID).tolist() == theirs.predict(rows)
    assert len(set(ours.predict(SAID))) == classes
    np.testing.assert_allclose(ours.predict_proba(SAID), theirs.predict_proba(rows), rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.decision_function(SAID), theirs.decision_function(rows), rtol=1e-12)
    assert ours.predict([]).shape == (0,)
    assert ours.predict_proba([]).shape == (0, classes)
    np.testing.assert_array_equal(ours.predict(np.array(SAID)), ours.predict(SAID))
    np.testing.assert_array_equal(ours.predict(pa.array(SAID)), ours.predict(SAID))


def test_a_learned_version_without_its_transcript_is_refused(tmp_path):
    write(tmp_path / "release")
    model = dpal.open_folder(tmp_path / "release", public_key=KEY)
    assert "bit for bit" in recomputation(model)
    model.files = {name: path for name, path in model.files.items() if name != "transcript.json"}
    with pytest.raises(dpal.errors.NotGenuine, match="lacks the transcript"):
        recomputation(model)
    model.version = 0
    assert "not recomputed" in recomputation(model)


def test_images_and_rows_are_read_as_they_are_kept(tmp_path):
    pixels = ImageFeaturizer(4, 4, centered=True)
    theirs = write(tmp_path / "images", pixels)
    images = np.random.default_rng(3).integers(0, 256, size=(9, 4, 4), dtype=np.uint8)
    ours = dpal.open_folder(tmp_path / "images", public_key=KEY)
    assert ours.predict(images).tolist() == theirs.predict(pixels.transform(images))
    theirs = write(tmp_path / "rows", COLUMNS)
    rows = [{"age": 3, "kind": "a"}, {"age": "97"}, {"kind": "c"}]
    ours = dpal.open_folder(tmp_path / "rows", public_key=KEY)
    for records in (rows, pa.Table.from_pylist([row | {"age": float(row.get("age", "nan"))} for row in rows])):
        assert ours.predict(records).tolist() == theirs.predict(COLUMNS.transform(rows))


@pytest.mark.parametrize(
    ("records", "sentence"),
    [("one text", "put a single one into a list"), (3, "put a single one"), ([3], "got int"), ([b"x"], "got bytes")],
)
def test_other_records_are_refused(tmp_path, records, sentence):
    write(tmp_path / "release")
    with pytest.raises(errors.NotFitting, match=sentence):
        dpal.open_folder(tmp_path / "release", public_key=KEY).predict(records)


def test_a_guarantee_of_two_accounts_is_never_told_as_one(tmp_path):
    answers = PRIVACY["accounts"][0] | {"protects": "the answers", "unit": "answer", "limit_epsilon": 8.0}
    both = PRIVACY | {"accounts": [*PRIVACY["accounts"], answers]}
    write(tmp_path / "release", privacy=both)
    model = dpal.open_folder(tmp_path / "release", public_key=KEY)
    assert [(one.unit, one.limit.epsilon) for one in model.guarantee] == [("contributor", 2.0), ("answer", 8.0)]
    for name in ("limit", "spent", "unit"):
        with pytest.raises(errors.DpalError, match="the pool of voice queries, the answers"):
            getattr(model.guarantee, name)
    assert "guarantee (2, 1e-06), (8, 1e-06)" in repr(model)
    assert "(8, 1e-06)-differential privacy for" in str(model.guarantee)


class TestForgeries:
    @pytest.fixture
    def folder(self, tmp_path):
        write(tmp_path / "release")
        return tmp_path / "release"

    def refused(self, folder, sentence, key=KEY):
        with pytest.raises(errors.NotGenuine, match=sentence):
            dpal.open_folder(folder, public_key=key)

    @pytest.mark.parametrize("name", ["weights.json", "features.json", "samples.json", "card.md", "model.onnx"])
    def test_a_changed_or_missing_file(self, folder, name):
        content = bytearray((folder / name).read_bytes())
        content[len(content) // 2] ^= 1
        (folder / name).write_bytes(content)
        self.refused(folder, f"{name} of .* differs from what was signed")
        (folder / name).unlink()
        self.refused(folder, f"lacks {name}")

    def test_a_manifest_made_anew(self, folder):
        (folder / "card.md").write_text("epsilon 0")
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["files"]["card.md"]["sha256"] = hashlib.sha256(b"epsilon 0").hexdigest()
        renewed = json_bytes(manifest)
        (folder / "manifest.json").write_bytes(renewed)
        self.refused(folder, r"does not fit manifest\.json")
        (folder / "manifest.sig").write_bytes(json_bytes(FORGER.sign(renewed)))
        self.refused(folder, "another key")
        self.refused(folder, "another key", key=base64.b64encode(bytes(32)).decode())
        claimed = FORGER.sign(renewed) | {"public_key": KEY}
        (folder / "manifest.sig").write_bytes(json_bytes(claimed))
        self.refused(folder, "does not fit")

    @pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"signature": "%%%", "public_key": ""}', b"\xff"])
    def test_a_signature_that_cannot_be_read(self, folder, content):
        (folder / "manifest.sig").write_bytes(content)
        self.refused(folder, "cannot be read")

    @pytest.mark.parametrize("key", ["", "not base64!", "AAAA"])
    def test_a_key_that_is_none(self, folder, key):
        self.refused(folder, "cannot be read", key=key)

    def test_a_folder_without_a_manifest(self, folder):
        (folder / "manifest.sig").unlink()
        self.refused(folder, "it is no complete release")

    @pytest.mark.parametrize(
        "body",
        [
            [],
            {},
            {"files": {}},
            {"release": {"project": "p", "version": 1}, "files": {}},
            {"release": {"project": "p", "version": 1}, "files": {}, "ledger": []},
            {"release": {"project": "p", "version": 1}, "files": {"../x": {"sha256": "0", "bytes": 1}}, "ledger": []},
        ],
    )
    def test_signed_manifests_that_say_too_little_or_too_much(self, body):
        content = json.dumps(body).encode()
        with pytest.raises(errors.NotGenuine, match=r"manifest\.json"):
            read_manifest(content, json_bytes(SIGNER.sign(content)), public_key=KEY)

    def test_a_ledger_that_was_not_signed_or_lacks_an_entry(self, tmp_path):
        for size in range(1, 8):
            write(tmp_path / f"good {size}", ledger=[place_of(size=size, sequences=range(1, size + 1))])
            (found,) = verify_folder(tmp_path / f"good {size}", public_key=KEY)[0].checkpoints
            assert (found.origin, found.size) == ("dpal-1/project:voice:pool", size)
        proof = LEDGER[0]["entries"][1]["proof"]
        for place, (ledger, sentence) in enumerate(
            (
                ([place_of(signer=FORGER)], "not signed by the key you trust"),
                (
                    [LEDGER[0] | {"checkpoint": LEDGER[0]["checkpoint"].replace("\n7\n", "\n8\n")}],
                    "not signed by the key",
                ),
                ([place_of(hash="ab" * 32)], "Entry 1 of dpal-1/project:voice:pool is not in the ledger"),
                ([place_of(sequences=[4], sequence=5)], "Entry 5"),
                ([place_of(sequences=[4], sequence=8)], "Entry 8"),
                ([place_of(sequences=[4], sequence=0)], "Entry 0"),
                ([place_of(sequences=[4], proof=proof[:-1])], "Entry 4"),
                ([place_of(sequences=[4], proof=[*proof, proof[0]])], "Entry 4"),
                ([place_of(sequences=[4], proof=["%"])], "or who paid"),
                ([{"checkpoint": "x", "entries": []}], "or who paid"),
                ([{}], "or who paid"),
            )
        ):
            write(tmp_path / str(place), ledger=ledger)
            self.refused(tmp_path / str(place), sentence)

    def test_a_model_that_predicts_something_else_here(self, folder, monkeypatch):
        verify_folder(folder, public_key=KEY)
        monkeypatch.setattr("dpal.features.hashing.murmur3", lambda words: np.zeros(len(words), dtype=np.int32))
        self.refused(folder, "predicts something else here")


def test_tokens_are_for_their_owner_alone(home):
    settings.remember("https://a.example", token="one", public_key="k")
    settings.remember("https://b.example", token="two")
    settings.remember("https://a.example", public_key="l")
    path = home / "config" / "sites.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert settings.known_of("https://a.example") == settings.Known("one", "l")
    assert settings.last_site() == "https://b.example"
    assert [one.name for one in path.parent.iterdir()] == ["sites.json"]
    path.write_text("{")
    with pytest.raises(errors.DpalError, match="remove it and log in again"):
        settings.known_of("https://a.example")


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("https://a.example/", "https://a.example"),
        ("a.example:8443", "https://a.example:8443"),
        ("http://localhost:8000/x", "http://localhost:8000"),
        ("http://127.0.0.1:1", "http://127.0.0.1:1"),
    ],
)
def test_addresses_of_sites(given, address):
    assert settings.site_address(given) == address


@pytest.mark.parametrize("given", ["http://a.example", "ftp://a.example", "https://", "http://localhost.evil.example"])
def test_no_token_goes_unencrypted(given):
    with pytest.raises(errors.DpalError):
        settings.site_address(given)


def test_parquet_in_batches_and_back(tmp_path):
    theirs = write(tmp_path / "release", COLUMNS, classes=3)
    rows = [{"age": age, "kind": kind, "kept": f"k{age}"} for age in range(0, 100, 7) for kind in ("a", "b", None)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "new.parquet")
    arguments = ["predict", str(tmp_path / "release"), str(tmp_path / "new.parquet"), "--folder", "--public-key", KEY]
    arguments += ["--batch-size", "4", "--probabilities"]
    done = CliRunner().invoke(main, [*arguments, "-o", str(tmp_path / "out.parquet")])
    assert done.exit_code == 0, done.output
    found = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert [{name: row[name] for name in ("age", "kind", "kept")} for row in found] == rows
    features = COLUMNS.transform(rows)
    assert [row["predicted"] for row in found] == theirs.predict(features)
    shares = [[row[f"probability_{name}"] for name in theirs.classes] for row in found]
    np.testing.assert_allclose(shares, theirs.predict_proba(features), rtol=0, atol=1e-12)
    done = CliRunner().invoke(main, [*arguments, "-o", str(tmp_path / "absent" / "out.parquet")])
    assert (done.exit_code, "cannot be written" in done.output) == (1, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.parquet", "out.parquet", "release"]


def test_decimal_commas_are_numbers(tmp_path):
    theirs = write(tmp_path / "release", COLUMNS, classes=3)
    (tmp_path / "new.csv").write_text("age;kind\n12,5;a\n1.234,5;1,5\n7;b\n;a\nmany;b\n")
    arguments = ["predict", str(tmp_path / "release"), str(tmp_path / "new.csv"), "--folder", "--public-key", KEY]
    done = CliRunner().invoke(main, [*arguments, "--decimal", ",", "-o", str(tmp_path / "out.csv")])
    assert done.exit_code == 0, done.output
    found = rows_of(tmp_path / "out.csv")
    assert [row["age"] for row in found] == ["12,5", "1.234,5", "7", "", "many"]
    ages = zip([12.5, 1234.5, 7, None, None], ["a", "1,5", "b", "a", "b"], strict=True)
    features = COLUMNS.transform([{"age": age, "kind": kind} for age, kind in ages])
    assert [row["predicted"] for row in found] == theirs.predict(features)
    refused = CliRunner().invoke(main, arguments)
    assert (refused.exit_code, "Column age has a decimal comma" in refused.output) == (1, True)
    (tmp_path / "new.csv").write_text("age;kind\n12.5;a\n")
    refused = CliRunner().invoke(main, [*arguments, "--decimal", ","])
    assert (refused.exit_code, "Column age has a decimal point" in refused.output) == (1, True)


@pytest.mark.parametrize(
    ("kind", "content", "sentence"),
    [
        ("csv", "a,b\n1\n", "Line 2 of .* has 1 field where the header names 2"),
        ("csv", "a;b\n1;2\n\n1,2\n", "Line 4 of .* has 1 field where the header names 2"),
        ("tsv", "a\ta\n1\t2\n", "more than one column named 'a'"),
        ("csv.gz", "a\n", "the gzip archive is damaged or cut off"),
        ("csv", 'a,b\n1,2\n"x"y,2\n', "Line 3 of .* a quote is closed in the middle of a field"),
        ("jsonl", '{"a": 1}\n{"a"\n', "Line 2 of .* is not valid JSON"),
        ("jsonl", "[1]\n", "Line 1 of .* is neither an object nor a text"),
        ("parquet", "text\n", "cannot be read as Parquet"),
        ("csv", b"a\n\xff\n", "Line 2 of .*: a is not valid in the file's encoding"),
        ("jsonl", '{"text": "cut \\ud83d"}\n', "Line 1 of .*: text holds half of a character"),
    ],
)
def test_bad_tables_are_named_by_line(tmp_path, kind, content, sentence):
    path = tmp_path / f"bad.{kind}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(errors.NotFitting, match=sentence):
        rows_of(path)


def rows_of(path):
    with tables.opened(str(path), tables.format_of(str(path), None), 1) as (_, batches):
        return [row for batch in batches for row in batch]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "text,n\nb c,1\n"),
        ("a.csv", "\ufefftext;n\r\nb c;1\r\n"),
        ("a.tsv", "text\tn\nb c\t1\n"),
        ("a.TSV.gz", "text\tn\nb c\t1\n"),
        ("a.csv.gz", 'text|n\n"b c"|1\n'),
        ("a.jsonl.gz", '{"text": "b c", "n": "1"}\n'),
        ("a.json", '[{"text": "b c", "n": "1"}]'),
        ("a.json", '{"data": [{"text": "b c", "n": "1"}]}'),
        ("a.json", '{"text": ["b c"], "n": ["1"]}'),
        ("a.csv", "\ufeff\ufeffsep=;\ntext;n\nb c;1\n"),
        ("a.csv", "# made by a tool\ntext,n\nb c,1,\n"),
        ("a.zip", "text,n\nb c,1\n"),
    ],
)
def test_a_table_means_the_same_in_every_form(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
    if name.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("rows.csv", content)
    assert rows_of(path) == [{"text": "b c", "n": "1"}]


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_a_table_without_rows_keeps_its_columns(tmp_path, kind):
    write(tmp_path / "release")
    (tmp_path / "new.csv").write_text("text,n\n")
    arguments = ["predict", str(tmp_path / "release"), str(tmp_path / "new.csv"), "--folder", "--public-key", KEY]
    done = CliRunner().invoke(main, [*arguments, "-o", str(tmp_path / f"out.{kind}")])
    assert done.exit_code == 0, done.output
    with tables.opened(str(tmp_path / f"out.{kind}"), kind, 1) as (columns, batches):
        assert (columns, list(batches)) == (["text", "n", "predicted"], [])
    (tmp_path / "new.csv").write_text("words,n\n")
    refused = CliRunner().invoke(main, arguments)
    assert "There is no column text, only words, n" in refused.output


def test_what_is_missing_is_named_as_the_package_declares_it():
    declared = tomllib.loads((REPOSITORY / "client" / "pyproject.toml").read_text())["project"]
    assert {name: list(needed) for name, needed in errors.EXTRAS.items()} == declared["optional-dependencies"]
