import contextlib
import gzip
import io
import json
import socket
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from annotation.data.readers.detection import detect_file
from annotation.data.readers.preview import preview_of
from annotation.data.readers.reading import Upload
from annotation.errors import AddressRefused, InvalidUpload, ScannerAway
from annotation.work import scanning
from annotation.work.outgoing import parse_target
from dpal import tables
from dpal.errors import DpalError, Unreadable
from dpal.reading.rows import FirstRows, Layout
from dpal_site.accounts.openid.issuer import IssuerRefused, read_claims, sound_description
from dpal_site.embedded.database_address import parse_database_url
from dpal_site.embedded.host import UnsupportedUrl
from learner.errors import ArtifactCorrupt
from learner.releases.artifacts.files import read_weights, verify_manifest
from learner.simulation.reading import FileColumns, read_task
from privacy.accounting.event import event_from_json
from privacy.gate.normalizers import Normalizer, normalize_text
from tests.fuzzing import TIMES, fuzz
from tests.in_process import reading_here
from tests.openid_issuer import PUBLIC, signed
from tests.workbooks import sheet, workbook

LIMIT = 300_000
# The process of a job makes the first of the second.
REFUSED = (InvalidUpload, Unreadable)
LAYOUTS = [
    Layout(kind="text", text="text", contributor="who", label="label", classes=("a", "b")),
    Layout(kind="table", declared=({"name": "n", "low": 0, "high": 1}, {"name": "c", "categories": ["a", "b"]})),
    Layout(kind="image", height=2, width=3),
]


def zipped(entries):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as target:
        for name, data in entries.items():
            target.writestr(name, data)
    return sink.getvalue()


def samples():
    table = {"text": ["one two", "three"], "who": ["ann", "bob"], "label": ["a", "b"], "n": [0.5, 1.0], "c": ["a", "b"]}
    lines = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    csv = b'text,who,label,n,c\none two,ann,a,0.5,a\n"th,ree",bob,b,1,b\n'
    parquet, picture = io.BytesIO(), io.BytesIO()
    pq.write_table(pa.table(table), parquet)
    Image.fromarray(np.arange(6, dtype=np.uint8).reshape(2, 3)).save(picture, "PNG")
    return {
        "rows.csv": csv,
        "rows.tsv": csv.replace(b",", b"\t"),
        "rows.csv.gz": gzip.compress(csv, mtime=0),
        "rows.jsonl": "\n".join(map(json.dumps, lines)).encode(),
        "rows.json": json.dumps({"rows": lines}, indent=1).encode(),
        "columns.json": json.dumps(table).encode(),
        "spacy.json": json.dumps([[line["text"], {"cats": {line["label"]: 1.0}}] for line in lines]).encode(),
        "prodigy.jsonl": "\n".join(
            json.dumps({"text": line["text"], "accept": [line["label"]], "answer": "accept", "_task_hash": 1})
            for line in lines
        ).encode(),
        "fasttext.txt": b"__label__a one two\n__label__b three\n",
        "packed.zip": zipped({"rows.csv": csv, "__MACOSX/._rows.csv": b"x"}),
        "hinted.csv": b"\xef\xbb\xbfsep=,\r\n# made by a tool\r\n" + csv,
        "tasks.json": json.dumps([{"id": n, "data": line} for n, line in enumerate(lines)]).encode(),
        "wide.csv": csv.decode().encode("utf-16"),
        "rows.parquet": parquet.getvalue(),
        "rows.xlsx": workbook({"A": sheet([list(table), *(list(line.values()) for line in lines)])}, compress=False),
        "images.zip": zipped({"a/1.png": picture.getvalue(), "b/2.png": picture.getvalue()}),
    }


SAMPLES = samples()
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["set", "cut", "insert", "double", "drop"]),
        st.floats(0, 1, exclude_max=True),
        st.binary(min_size=1, max_size=6),
    ),
    min_size=1,
    max_size=6,
)


def changed(data, changes):
    for kind, where, piece in changes:
        place = int(where * max(1, len(data)))
        if kind == "set":
            data = data[:place] + piece + data[place + len(piece) :]
        elif kind == "insert":
            data = data[:place] + piece + data[place:]
        elif kind == "cut":
            data = data[:place]
        elif kind == "drop":
            data = data[:place] + data[place + 8 * len(piece) :]
        else:
            data = data + data[place:]
    return data


@pytest.fixture
def in_this_process():
    """Start no process for each of thousands of files; `make fuzz` starts them, and so do uploads of anything."""
    with contextlib.nullcontext() if TIMES else reading_here():
        yield


def read(data, name, layout):
    with contextlib.suppress(*REFUSED):
        upload = Upload(io.BytesIO(data), name, layout, maximum_bytes=LIMIT)
        for batch in upload.batches():
            assert batch.count <= LIMIT
            assert not any("\0" in text for text in batch.texts or ())
    with contextlib.suppress(*REFUSED):
        seen = preview_of(Upload(io.BytesIO(data), name, layout, maximum_bytes=LIMIT, look=FirstRows(20)), layout)
        assert len(seen.rows) <= 20
    with contextlib.suppress(*REFUSED):
        detect_file(io.BytesIO(data), name, maximum_bytes=LIMIT, labelled=True)
    with tempfile.NamedTemporaryFile(suffix=name) as file:
        file.write(data)
        file.flush()
        with contextlib.suppress(*REFUSED, ValueError):
            read_task(Path(file.name), columns=FileColumns(), settings={}, label_counts=[1], seeds=1)
        with (
            contextlib.suppress(DpalError),
            tables.opened(file.name, tables.format_of(file.name, None), 7) as (_, rows),
        ):
            assert all(isinstance(row, dict) for batch in rows for row in batch)


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.kind)
@pytest.mark.parametrize("name", SAMPLES)
@fuzz(25)
@given(changes=CHANGES)
def test_damaged_uploads(name, layout, changes):
    read(changed(SAMPLES[name], changes), name, layout)


@fuzz(40)
@given(data=st.binary(max_size=400), name=st.sampled_from(sorted(SAMPLES)), layout=st.sampled_from(LAYOUTS))
def test_uploads_of_anything(data, name, layout):
    read(data, name, layout)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.usefixtures("in_this_process")
@fuzz(30)
@given(value=ANYTHING)
def test_rows_of_any_json(value):
    for text in (json.dumps(value), json.dumps([{"data": value}]), json.dumps({"text": value, "n": value, "c": value})):
        for name in ("rows.jsonl", "tasks.json"):
            for layout in LAYOUTS[:2]:
                read(text.encode(), name, layout)


@fuzz(100)
@given(text=st.text(max_size=60), normalizer=st.sampled_from(list(Normalizer)))
def test_any_text_can_be_normalised(text, normalizer):
    assert "\0" not in normalize_text(text.replace("\0", ""), normalizer)


@fuzz(150)
@given(url=st.text(max_size=40) | st.from_regex(r"https?://[^\s/]{0,20}(:\d{0,6})?(/\S*)?(\?\S*)?", fullmatch=True))
def test_any_address_of_a_webhook(url):
    try:
        assert parse_target(url, allowed=["hooks.example.org"]).host == "hooks.example.org"
    except AddressRefused:
        return


@fuzz(150)
@given(url=st.text(max_size=40) | st.from_regex(r"postgresql://\S{0,12}@?\S{0,12}(:\S{0,6})?/\S*", fullmatch=True))
def test_any_address_of_a_database(url):
    try:
        assert parse_database_url(url)["NAME"]
    except UnsupportedUrl:
        return


@fuzz(100)
@given(value=ANYTHING, kind=st.sampled_from(["laplace", "gaussian", "k_anonymity_gate", "", "top_c"]))
def test_any_event_of_the_ledger(value, kind):
    body = {"kind": kind, "mechanism": kind, **(value if isinstance(value, dict) else {"value": value})}
    with contextlib.suppress(ValueError, TypeError, KeyError):
        event_from_json(body)


# What an ID token may carry in the place of each claim and of each member of a key.
CLAIM = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.lists(st.text(max_size=4))
CLAIMS = st.dictionaries(st.sampled_from(["iss", "sub", "aud", "azp", "exp", "iat", "nbf", "nonce", "jti"]), CLAIM)
MEMBERS = st.dictionaries(st.sampled_from(["kty", "crv", "x", "y", "n", "e", "k", "kid", "alg", "use", "d"]), CLAIM)


@fuzz(100)
@given(changed=CLAIMS, member=MEMBERS, keys=ANYTHING, token=st.text(max_size=60) | st.none())
def test_any_word_of_an_issuer(changed, member, keys, token):
    now = int(time.time())
    sound = {"iss": "i", "aud": "dpal", "sub": "42", "iat": now, "exp": now + 900, "nonce": "n"}
    expected = {"issuer": "i", "client_id": "dpal", "nonce": "n"}
    assert read_claims(signed(sound), keys={"keys": [PUBLIC]}, **expected)["sub"] == "42"
    for sent, known in (
        (signed(sound | changed), {"keys": [PUBLIC]}),
        (signed(sound), {"keys": [PUBLIC | member]}),
        (signed(sound), keys),
        (signed(sound), {"keys": keys}),
        (token, {"keys": [PUBLIC]}),
    ):
        with contextlib.suppress(IssuerRefused):
            claims = read_claims(sent, keys=known, **expected)
            assert (claims["iss"], claims["nonce"]) == ("i", "n")
            assert claims["aud"] == "dpal" or "dpal" in claims["aud"]
    for described in (keys, {"issuer": "i"} | (keys if isinstance(keys, dict) else {})):
        if isinstance(described, dict):
            with contextlib.suppress(IssuerRefused):
                assert sound_description(described, issuer="i")["issuer"] == "i"


@fuzz(100)
@given(
    reply=st.binary(max_size=40),
    prefix=st.sampled_from([b"", b"stream: "]),
    ending=st.sampled_from([b"", b" FOUND", b" OK"]),
)
def test_any_reply_of_a_scanner(reply, prefix, ending):
    """No bytes but the two words of a clean file let a file pass."""
    sent = prefix + reply + ending
    ours, theirs = socket.socketpair()
    with ours, theirs, contextlib.suppress(ScannerAway):
        theirs.sendall(sent + b"\0")
        ours.settimeout(30)
        found = scanning.scan_connected(ours, io.BytesIO(), patience_seconds=30, check=lambda: None)
        assert found.name or found.too_large or sent.partition(b"\0")[0].strip() == b"stream: OK"


@fuzz(60)
@given(value=ANYTHING, raw=st.binary(max_size=60))
def test_any_file_of_a_release(tmp_path_factory, value, raw):
    folder = tmp_path_factory.mktemp("release")
    loaders = {"weights.json": read_weights, "manifest.json": lambda file: verify_manifest(file.parent)}
    for content in (json.dumps(value).encode(), raw):
        for name, load in loaders.items():
            (folder / name).write_bytes(content)
            with contextlib.suppress(ArtifactCorrupt):
                load(folder / name)


def test_a_reader_that_breaks_is_noticed(monkeypatch):
    monkeypatch.setattr("annotation.data.readers.texts.TextReader.batches", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        test_uploads_of_anything.hypothesis.inner_test(b"text\na\n", "rows.csv", Layout(kind="text", text="text"))
