import base64
import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site_settings

from dpal.errors import NotGenuine
from dpal.manifest import verify_folder
from learner.errors import ArtifactCorrupt
from learner.releases.artifacts.files import verify_release
from privacy.ledger.auditor.merkle import leaf_hash, root_of
from privacy.ledger.auditor.notes import Checkpoint, open_checkpoint, sign_checkpoint
from privacy.ledger.auditor.statement import SIGNED_BEFORE, StatementRefused, audit_statement, signature_of
from privacy.ledger.auditor.witness import LedgerRefused, ShownAccount, Witness
from privacy.ledger.checkpoints import site_key
from privacy.ledger.keys import SiteKey, decoded_key
from tests.auditing import Files, handed_over

pytestmark = pytest.mark.django_db(transaction=True)
MANUAL = Path(site_settings.BASE_DIR) / "docs" / "ledger.md"
FORGER = SiteKey.from_secret("a forger's secret, long enough to derive a key from")


@pytest.fixture
def files(live_server, tmp_path) -> Files:
    return handed_over(live_server.url, tmp_path)


# Who looks: each returns whether it refuses.


def _refused(act: Callable[[], object], *errors: type[Exception]) -> bool:
    try:
        act()
    except errors:
        return True
    return False


def audit_refuses(files: Files, *, witnessed: bool = False) -> bool:
    seen = json.loads(files.seen.read_text())["checkpoints"] if witnessed else {}
    try:
        return not audit_statement(files.statement.read_bytes(), public_key=files.key, seen=seen).sound
    except StatementRefused:
        return True


def witness_refuses(files: Files) -> bool:
    """Show the checkpoints of the statement to the witness, who has seen them before; a proof is a guess at best."""
    shown = [
        ShownAccount(account["scope"], account["checkpoint"])
        for account in json.loads(files.statement.read_text())["accounts"]
    ]
    return _refused(
        lambda: Witness.at(files.seen, public_key=files.key).look(shown, lambda *_: [bytes(32)]), LedgerRefused
    )


def client_refuses(files: Files) -> bool:
    return _refused(lambda: verify_folder(files.release, public_key=files.key), NotGenuine)


def site_refuses(files: Files) -> bool:
    return _refused(lambda: verify_release(files.release, public_key=files.key), ArtifactCorrupt)


OF_STATEMENTS: Mapping[str, Callable[[Files], bool]] = {
    "statement audit": audit_refuses,
    "the same, `--witnessed`": lambda files: audit_refuses(files, witnessed=True),
    "witness": witness_refuses,
}
OF_RELEASES: Mapping[str, Callable[[Files], bool]] = {
    "`dpal verify`": client_refuses,
    "`verify_release`": site_refuses,
}
Tampering = tuple[str, Callable[[Files], None]]


def in_statement(change: Callable[[dict[str, Any]], None], key: SiteKey | None = None) -> Callable[[Files], None]:
    """Change a statement; with a key, sign it anew."""

    def tamper(files: Files) -> None:
        document = json.loads(files.statement.read_text())
        change(document)
        signature = document.pop("signature")
        before = json.dumps(document, ensure_ascii=False).encode()[:-1]
        end = SIGNED_BEFORE + json.dumps(signature).encode() + b"}\n"
        if key is not None:
            end = signature_of(hashlib.sha256(before).hexdigest(), key)
        files.statement.write_bytes(before + end)

    return tamper


def other(text: str) -> str:
    return ("0" if text[:1] != "0" else "1") + text[1:]


def entry_changed(number: int) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        document["accounts"][0]["entries"][number]["actor"] += "x"

    return change


def entry_out(number: int) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        del document["accounts"][0]["entries"][number]

    return change


def rolled_back(key: SiteKey) -> Callable[[dict[str, Any]], None]:
    """Leave the last entry out and make everything that follows from the others anew, signatures too."""

    def change(document: dict[str, Any]) -> None:
        account = document["accounts"][0]
        entries = account["entries"] = account["entries"][:-1]
        account["chain_head"] = account["verdict"]["chain_head"] = entries[-1]["hash"]
        account["verdict"]["entries"] = len(entries)
        origin = account["checkpoint"].partition("\n")[0]
        root = root_of([leaf_hash(bytes.fromhex(entry["hash"])) for entry in entries])
        account["checkpoint"] = sign_checkpoint(Checkpoint(origin, len(entries), root), key)

    return change


def checkpoint_line(number: int) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        account = document["accounts"][0]
        lines = account["checkpoint"].split("\n")
        lines[number] = other(lines[number])
        account["checkpoint"] = "\n".join(lines)

    return change


def checkpoint_signed_by(key: SiteKey) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        account = document["accounts"][0]
        found = open_checkpoint(account["checkpoint"], public_key=decoded_key(site_key().public_key))
        account["checkpoint"] = sign_checkpoint(found, key)

    return change


def witness_file(files: Files) -> None:
    kept = json.loads(files.seen.read_text())
    origin, note = next(iter(kept["checkpoints"].items()))
    lines = note.split("\n")
    lines[1] = str(int(lines[1]) + 1)
    kept["checkpoints"][origin] = "\n".join(lines)
    files.seen.write_text(json.dumps(kept))


def of_statements(files: Files) -> list[Tampering]:
    entries = json.loads(files.statement.read_text())["accounts"][0]["entries"]
    rows: list[Tampering] = []
    for kind in dict.fromkeys(entry["kind"] for entry in entries):
        numbers = [number for number, entry in enumerate(entries) if entry["kind"] == kind]
        rows += [(f"a `{kind}` changed or taken out", in_statement(entry_changed(number))) for number in numbers]
        rows += [(f"a `{kind}` changed or taken out", in_statement(entry_out(number))) for number in numbers]
    return [
        *rows,
        ("the checkpoint's size", in_statement(checkpoint_line(1))),
        ("the checkpoint's root", in_statement(checkpoint_line(2))),
        ("the checkpoint's signature", in_statement(lambda document: checkpoint_cut(document))),
        ("a checkpoint by another key, the file too", in_statement(checkpoint_signed_by(FORGER), FORGER)),
        ("a ledger rolled back, made anew by a forger", in_statement(rolled_back(FORGER), FORGER)),
        ("a ledger rolled back, made anew by the site itself", in_statement(rolled_back(site_key()), site_key())),
        ("what the witness kept", witness_file),
    ]


def checkpoint_cut(document: dict[str, Any]) -> None:
    account = document["accounts"][0]
    name, signature = account["checkpoint"].rstrip("\n").rsplit(" ", 1)
    raw = bytearray(base64.b64decode(signature))
    raw[-1] ^= 1
    account["checkpoint"] = f"{name} {base64.b64encode(raw).decode()}\n"


def of_releases(files: Files) -> list[Tampering]:
    def changed(name: str) -> Callable[[Files], None]:
        def tamper(files: Files) -> None:
            path = files.release / name
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 1
            path.write_bytes(content)

        return tamper

    def gone(name: str) -> Callable[[Files], None]:
        return lambda files: (files.release / name).unlink()

    def forged(files: Files) -> None:
        path = files.release / "manifest.json"
        body = json.loads(path.read_text())
        card = files.release / "card.md"
        card.write_text(card.read_text() + "\nFor everybody.\n")
        body["files"]["card.md"] = hashlib.sha256(card.read_bytes()).hexdigest()
        path.write_text(json.dumps(body))
        signed = json.loads((files.release / "manifest.sig").read_text())
        signed |= {
            "public_key": FORGER.public_key,
            "signature": base64.b64encode(FORGER.sign(path.read_bytes())).decode(),
        }
        (files.release / "manifest.sig").write_text(json.dumps(signed))

    def checkpoint(files: Files) -> None:
        path = files.release / "manifest.json"
        body = json.loads(path.read_text())
        lines = body["ledger"][0]["checkpoint"].split("\n")
        lines[2] = other(lines[2])
        body["ledger"][0]["checkpoint"] = "\n".join(lines)
        path.write_text(json.dumps(body))

    names = sorted(path.name for path in files.release.iterdir())
    return [
        *((f"`{name}`", changed(name)) for name in names),
        *((f"`{name}`", gone(name)) for name in names),
        ("a file more", lambda files: (files.release / "more.bin").write_bytes(b"x") and None),
        ("the checkpoint in the manifest", checkpoint),
        ("a changed card, signed anew by another key", forged),
    ]


def matrix(files: Files, tamperings: list[Tampering], who: Mapping[str, Callable[[Files], bool]]) -> list[str]:
    untouched = files.folder.with_name("untouched")
    shutil.copytree(files.folder, untouched)
    assert not any(refuses(files) for refuses in who.values()), "somebody refuses what is genuine"
    rows: dict[str, list[bool]] = {}
    for name, tamper in tamperings:
        tamper(files)
        found = [refuses(files) for refuses in who.values()]
        assert rows.setdefault(name, found) == found, name
        shutil.rmtree(files.folder)
        shutil.copytree(untouched, files.folder)
    outcomes: dict[tuple[bool, ...], list[str]] = {}
    for name, found in rows.items():
        outcomes.setdefault(tuple(found), []).append(name)
    head = ["| changed | " + " | ".join(who) + " |", "|---" * (len(who) + 1) + "|"]
    return head + [
        f"| {'; '.join(names)} | " + " | ".join("refused" if one else "taken" for one in found) + " |"
        for found, names in outcomes.items()
    ]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("tamperings", "who"), [(of_statements, OF_STATEMENTS), (of_releases, OF_RELEASES)], ids=["statement", "release"]
)
def test_the_manual_says_who_catches_what(files, tamperings, who):
    """Everything that is changed is refused by somebody; the table in the manual is this one, line by line."""
    table = matrix(files, tamperings(files), who)
    assert all("refused" in row for row in table[2:]), "\n".join(table)
    assert "\n".join(table) in MANUAL.read_text(encoding="utf-8"), "\n".join(table)
