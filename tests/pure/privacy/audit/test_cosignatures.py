"""A witness's cosignature says when it saw which checkpoint, and nobody else can say so in its name."""

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from privacy.audit.__main__ import main
from privacy.audit.cosignatures import Cosigner, cosigned_at
from privacy.audit.keys import SiteKey, decoded_key
from privacy.audit.notes import Checkpoint, NoteRefused, open_checkpoint, sign_checkpoint
from privacy.audit.witness import Witness, witness_site
from tests.pure.privacy.audit.test_witness import ENTRIES, KEY, Ledger

NOW = datetime(2026, 11, 23, 15, 4, 5, tzinfo=UTC)
CHECKPOINT = Checkpoint("site/pool", 12, bytes(range(32)))
WITNESS = Cosigner("witness.example/w1", SiteKey.from_secret("a witness's secret, long enough to derive a key"))
OTHER = Cosigner("witness.example/w1", SiteKey.from_secret("another witness's secret, as long as the other"))


def test_a_cosignature_is_laid_out_as_the_standard_says() -> None:
    """Taken apart by hand: four bytes of key hash, eight of the time, and a signature over three lines and the text."""
    note = WITNESS.cosign(sign_checkpoint(CHECKPOINT, KEY), at=NOW)
    name, encoded = note.splitlines()[-1].removeprefix("\u2014 ").split(" ")
    raw = base64.b64decode(encoded)
    assert (name, len(raw)) == (WITNESS.name, 4 + 8 + 64)
    assert int.from_bytes(raw[4:12], "big") == int(NOW.timestamp())
    signed = f"cosignature/v1\ntime {int(NOW.timestamp())}\nsite/pool\n12\n".encode()
    signed += base64.b64encode(bytes(range(32))) + b"\n"
    Ed25519PublicKey.from_public_bytes(WITNESS.key.public_bytes).verify(raw[12:], signed)
    assert WITNESS.verifier.split("+")[1] == raw[:4].hex()
    assert base64.b64decode(WITNESS.verifier.split("+", 2)[2])[:1] == b"\x04"


def test_it_stands_beside_the_sites_own_signature() -> None:
    note = WITNESS.cosign(sign_checkpoint(CHECKPOINT, KEY), at=NOW)
    assert open_checkpoint(note, public_key=decoded_key(KEY.public_key)) == CHECKPOINT
    assert cosigned_at(note, verifier=WITNESS.verifier) == NOW
    later = WITNESS.cosign(note, at=NOW + timedelta(days=1))
    assert cosigned_at(later, verifier=WITNESS.verifier) == NOW + timedelta(days=1)


def test_nobody_cosigns_in_anothers_name() -> None:
    note = sign_checkpoint(CHECKPOINT, KEY)
    for forged in (note, OTHER.cosign(note, at=NOW)):
        with pytest.raises(NoteRefused, match="has not cosigned"):
            cosigned_at(forged, verifier=WITNESS.verifier)
    # The site's key under the witness's name is another kind of signature.
    with pytest.raises(ValueError, match="key of a witness"):
        cosigned_at(note, verifier=WITNESS.verifier.replace("+BA", "+AQ", 1).replace("w1+", "w2+", 1))


@pytest.mark.parametrize("change", ["size", "root", "time", "signature"])
def test_what_was_cosigned_cannot_be_changed(change: str) -> None:
    lines = WITNESS.cosign(sign_checkpoint(CHECKPOINT, KEY), at=NOW).split("\n")
    if change == "size":
        lines[1] = "11"
    elif change == "root":
        lines[2] = base64.b64encode(bytes(32)).decode()
    else:
        name, encoded = lines[-2].rsplit(" ", 1)
        raw = bytearray(base64.b64decode(encoded))
        raw[11 if change == "time" else 40] ^= 1
        lines[-2] = f"{name} {base64.b64encode(raw).decode()}"
    with pytest.raises(NoteRefused, match="does not fit"):
        cosigned_at("\n".join(lines), verifier=WITNESS.verifier)


@pytest.mark.parametrize("name", ["", "a witness", "a+b"])
def test_a_name_that_cannot_stand_in_a_line_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="name of a witness"):
        Cosigner(name, KEY)


def test_a_witness_keeps_what_it_has_cosigned(tmp_path, capsys) -> None:
    seen = Witness.at(tmp_path / "seen.json", public_key=KEY.public_key)
    seen.cosigner = WITNESS
    witness_site(Ledger(pool=ENTRIES[:12]), seen)
    witness_site(Ledger(pool=ENTRIES[:15]), seen)
    (note,) = json.loads(seen.path.read_text())["checkpoints"].values()
    assert datetime.now(UTC) - cosigned_at(note, verifier=WITNESS.verifier) < timedelta(minutes=5)
    assert open_checkpoint(note, public_key=decoded_key(KEY.public_key)).size == 15
    # An auditor who trusts the witness takes what it cosigned alone.
    statement = tmp_path / "statement.json"
    statement.write_text("{}")
    call = ["statement", str(statement), "--public-key", KEY.public_key, "--witnessed", str(seen.path), "--witness-key"]
    assert main([*call, OTHER.verifier]) == 1
    assert "has not cosigned" in capsys.readouterr().err
    assert main([*call, WITNESS.verifier]) == 1
    told = capsys.readouterr()
    assert "site/pool: cosigned at" in told.out
    assert "a statement has the fields" in told.err
