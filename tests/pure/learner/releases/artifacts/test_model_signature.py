import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from model_signing import signing, verifying

from learner.errors import ArtifactCorrupt
from learner.releases.artifacts.files import verify_release
from learner.releases.artifacts.model_signature import MODEL_SIGNATURE, ModelKey, check_bundle
from learner.releases.artifacts.signatures import Signer
from tests.pure.learner.releases.artifacts.test_files import SIGNER, write

OTHER = ModelKey.from_secret("another secret of the test, as long as the other")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "release"
    write(folder)
    return folder


@pytest.fixture
def release(made, tmp_path) -> Path:
    folder = tmp_path / "release"
    folder.mkdir()
    for path in made.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (tmp_path / "site.pem").write_text(SIGNER.models.public_key)
    return folder


def verify(folder: Path) -> None:
    key = folder.parent / "site.pem"
    verifying.Config().use_elliptic_key_verifier(public_key=key).verify(folder, folder / MODEL_SIGNATURE)


def changed(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def command(folder: Path) -> "subprocess.CompletedProcess[str]":
    options = ["--signature", str(folder / MODEL_SIGNATURE), "--public_key", str(folder.parent / "site.pem")]
    call = [sys.executable, "-m", "model_signing", "verify", "key", str(folder), *options]
    return subprocess.run(call, capture_output=True, text=True)


def test_the_standard_program_takes_a_release_and_refuses_a_changed_one(release):
    taken = command(release)
    assert taken.returncode == 0, taken.stderr
    assert "succeeded" in taken.stdout
    changed(release / "weights.json", 10)
    refused = command(release)
    assert refused.returncode != 0
    assert "weights.json" in refused.stderr


def test_every_changed_file_is_refused_by_the_standard_program_and_by_ours(release):
    verify(release)
    verify_release(release, public_key=SIGNER.public_key)
    names = sorted(path.name for path in release.iterdir())
    assert len(names) >= 10
    for name in names:
        genuine = (release / name).read_bytes()
        # Of the bundle some bytes are layout and a repeated algorithm: it is what it says that is signed.
        for place in () if name == MODEL_SIGNATURE else (0, len(genuine) // 2, len(genuine) - 1):
            changed(release / name, place)
            with pytest.raises(ValueError, match=f"Signature mismatch.*{re.escape(name)}"):
                verify(release)
            with pytest.raises(ArtifactCorrupt):
                verify_release(release, public_key=SIGNER.public_key)
            (release / name).write_bytes(genuine)
        (release / name).unlink()
        with pytest.raises((ValueError, OSError)):
            verify(release)
        with pytest.raises(ArtifactCorrupt):
            verify_release(release, public_key=SIGNER.public_key)
        (release / name).write_bytes(genuine)
    (release / "more.bin").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"more\.bin"):
        verify(release)


@pytest.mark.parametrize("field", ["payload", "payloadType", "sig", "mediaType", "hint"])
def test_every_part_of_the_bundle_that_says_something_counts(release, field):
    bundle = json.loads((release / MODEL_SIGNATURE).read_text())
    holder = {
        "payload": bundle["dsseEnvelope"],
        "payloadType": bundle["dsseEnvelope"],
        "sig": bundle["dsseEnvelope"]["signatures"][0],
        "mediaType": bundle,
        "hint": bundle["verificationMaterial"]["publicKey"],
    }[field]
    holder[field] = holder[field][:20] + ("A" if holder[field][20] != "A" else "B") + holder[field][21:]
    (release / MODEL_SIGNATURE).write_text(json.dumps(bundle))
    with pytest.raises((ValueError, InvalidSignature)):
        verify(release)
    if field in ("payload", "payloadType", "sig"):
        with pytest.raises(ArtifactCorrupt, match="model"):
            verify_release(release, public_key=SIGNER.public_key)


def test_a_bundle_of_another_key_is_refused(release):
    digests = verify_release(release, public_key=SIGNER.public_key)
    del digests[MODEL_SIGNATURE]
    (release / MODEL_SIGNATURE).write_bytes(OTHER.bundle(digests, name="release"))
    with pytest.raises(ValueError, match="Key mismatch"):
        verify(release)
    with pytest.raises(ArtifactCorrupt, match="another key"):
        verify_release(release, public_key=SIGNER.public_key)
    check_bundle((release / MODEL_SIGNATURE).read_bytes(), digests, public_key=OTHER.public_key)


def test_ours_takes_what_the_standard_program_signs(release, tmp_path):
    """Same statement, written by them: the two agree on what a model is."""
    private = tmp_path / "private.pem"
    form, nothing = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private.write_bytes(SIGNER.models.key.private_bytes(serialization.Encoding.PEM, form, nothing))
    digests = verify_release(release, public_key=SIGNER.public_key)
    ours = json.loads((release / MODEL_SIGNATURE).read_text())
    (release / MODEL_SIGNATURE).unlink()
    signing.Config().use_elliptic_key_signer(private_key=private).sign(release, release / MODEL_SIGNATURE)
    del digests[MODEL_SIGNATURE]
    check_bundle((release / MODEL_SIGNATURE).read_bytes(), digests, public_key=SIGNER.models.public_key)
    theirs = json.loads((release / MODEL_SIGNATURE).read_text())
    assert theirs.keys() <= ours.keys() | {"messageSignature"}
    assert theirs["mediaType"] == ours["mediaType"]


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"dsseEnvelope": {}}', b"\xff"])
def test_what_cannot_be_read_is_refused(content):
    with pytest.raises(ArtifactCorrupt, match=r"model\.sig"):
        check_bundle(content, {}, public_key=SIGNER.models.public_key)
    with pytest.raises(ArtifactCorrupt, match=r"model\.sig"):
        check_bundle(SIGNER.models.bundle({}, name="x"), {}, public_key="no key")


def test_the_same_files_give_the_same_bytes_and_another_secret_another_key():
    digests = {"weights.json": "ab" * 32}
    again = Signer.from_secret("a secret of the test, long enough to derive a key").models
    assert again.bundle(digests, name="x") == SIGNER.models.bundle(digests, name="x")
    assert again.public_key == SIGNER.models.public_key != OTHER.public_key
    assert "ModelKey()" in repr(again)
