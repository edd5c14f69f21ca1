import base64

import pytest

from privacy.ledger.auditor.merkle import EMPTY_ROOT, leaf_hash
from privacy.ledger.auditor.notes import (
    Checkpoint,
    NoteRefused,
    open_checkpoint,
    open_note,
    sign_checkpoint,
    signed_note,
)
from privacy.ledger.keys import SiteKey, decoded_key

KEY = SiteKey.from_secret("a secret of the test, long enough to derive a key")
OTHER = SiteKey.from_secret("another secret of the test, as long as the other")
CHECKPOINT = Checkpoint("dpal-site/project:voice", 12, leaf_hash(b"x"))

# The example in the documentation of golang.org/x/mod/sumdb/note.
NEUMANN = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
SAYING = (
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
    "\n\u2014 PeterNeumann "
    "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)


def test_a_published_note_opens() -> None:
    name, _, encoded = NEUMANN.split("+", 2)
    text = open_note(SAYING, name=name, public_key=base64.b64decode(encoded)[1:])
    assert text.startswith("If you think")
    assert text.endswith("is.\n")
    with pytest.raises(NoteRefused, match="does not fit"):
        open_note(SAYING.replace("answer", "Answer"), name=name, public_key=base64.b64decode(encoded)[1:])


def test_a_checkpoint_comes_back() -> None:
    note = sign_checkpoint(CHECKPOINT, KEY)
    assert note.split("\n")[1] == "12"
    public = decoded_key(KEY.public_key)
    assert open_checkpoint(note, public_key=public) == CHECKPOINT
    assert open_checkpoint(note, public_key=public, origin=CHECKPOINT.origin) == CHECKPOINT
    empty = Checkpoint("site/a", 0, EMPTY_ROOT)
    assert open_checkpoint(sign_checkpoint(empty, KEY), public_key=public) == empty
    with pytest.raises(NoteRefused, match="not of"):
        open_checkpoint(note, public_key=public, origin="site/other")


def test_others_may_sign_beside_it_and_nobody_in_its_place() -> None:
    note, forged = (sign_checkpoint(CHECKPOINT, each) for each in (KEY, OTHER))
    line = forged.rsplit("\n\n", 1)[1]
    assert open_checkpoint(note + line, public_key=decoded_key(KEY.public_key)) == CHECKPOINT
    with pytest.raises(NoteRefused, match="no signature"):
        open_checkpoint(forged, public_key=decoded_key(KEY.public_key))


def test_every_changed_byte_is_refused() -> None:
    note = sign_checkpoint(CHECKPOINT, KEY)
    public = decoded_key(KEY.public_key)
    for place, letter in enumerate(note):
        changed = note[:place] + ("A" if letter != "A" else "B") + note[place + 1 :]
        with pytest.raises(NoteRefused):
            open_checkpoint(changed, public_key=public)
        with pytest.raises(NoteRefused):
            open_checkpoint(note[:place], public_key=public)


@pytest.mark.parametrize(
    "text",
    [
        "site/a\n12\n",
        "site/a\n012\nAAAA\n",
        "site/a\n-1\nAAAA\n",
        "site/a\n1\nAAAA\n",
        "site/a\n1\n%%%%\n",
        "\n1\n" + "A" * 43 + "=\n",
        "site/a\n" + "9" * 5000 + "\n" + "A" * 43 + "=\n",
        "site/a\n1\n" + "A" * 43 + "=",
    ],
)
def test_what_is_no_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(NoteRefused):
        Checkpoint.from_text(text)


@pytest.mark.parametrize(("text", "name"), [("x", "a"), ("x\ty\n", "a"), ("x\n", ""), ("x\n", "a b"), ("x\n", "a+b")])
def test_what_cannot_stand_in_a_note_is_not_signed(text: str, name: str) -> None:
    with pytest.raises(ValueError, match=r"note|name"):
        signed_note(text, name=name, key=KEY)


@pytest.mark.parametrize(
    "note", ["", "x\n", "x\n\n", "x\n\nsomebody\n", "x\n\n\u2014 a\n", "x\r\n\n\u2014 a AAAA\n", "x" * 70000]
)
def test_what_is_no_note_is_refused(note: str) -> None:
    with pytest.raises(NoteRefused):
        open_note(note, name="a", public_key=decoded_key(KEY.public_key))
