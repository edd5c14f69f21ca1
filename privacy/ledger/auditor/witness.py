"""Witness on another host: keeps the last checkpoint of each account, refuses a ledger that forgot or forked."""

# It needs the site's address, a token that may read the ledger, and the site's public key, learnt before.

import base64
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from privacy.ledger.auditor.merkle import verify_consistency
from privacy.ledger.auditor.notes import Checkpoint, NoteRefused, open_checkpoint
from privacy.ledger.keys import decoded_key

FORMAT = "dpal-witness/1"
AT_HOME = ("127.0.0.1", "::1", "localhost")
LONGEST_ANSWER = 4 * 1024 * 1024
SECONDS = 60
PAGE = 1000


class LedgerRefused(Exception):
    """The ledger shown is not the one seen before, or nobody can say that it is."""


@dataclass(frozen=True, slots=True)
class ShownAccount:
    account: str
    note: str


# What proves that the log of an account grew from one size to another.
Proof = Callable[[str, int, int], Sequence[bytes]]


@dataclass(slots=True)
class Witness:
    """The checkpoints seen, by the names of their logs, in a file that only this witness writes.

    Attributes
    ----------
    path : Path
        Where they are kept.
    public_key : str
        The site's key, base64; a file begun under another one is refused.
    notes : dict of str to str
        The newest checkpoint of each log, as it was signed.
    """

    path: Path
    public_key: str
    notes: dict[str, str]

    @classmethod
    def at(cls, path: Path, *, public_key: str) -> "Witness":
        """Open a witness's file, or begin one.

        Raises
        ------
        LedgerRefused
            If the file is damaged or belongs to another key.
        """
        decoded_key(public_key)
        if not path.exists():
            return cls(path, public_key, {})
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            known, notes = kept["public_key"], dict(kept["checkpoints"])
        except (ValueError, KeyError, TypeError) as error:
            raise LedgerRefused(f"{path.name} is damaged: what was seen before is lost") from error
        if known != public_key:
            raise LedgerRefused(f"{path.name} was begun under another key of the site")
        return cls(path, public_key, notes)

    def look(self, shown: Sequence[ShownAccount], proof: Proof) -> list[Checkpoint]:
        """Compare what a site shows with what was seen, keep it, and return it.

        `LedgerRefused` if an account has lost entries, has others than before, or is gone; nothing is kept then.
        """
        key = decoded_key(self.public_key)
        fresh: dict[str, str] = {}
        found = []
        for each in shown:
            checkpoint = _opened(each.note, key)
            if checkpoint.origin in fresh:
                raise LedgerRefused(f"{checkpoint.origin} is shown twice")
            if checkpoint.origin in self.notes:
                follows(_opened(self.notes[checkpoint.origin], key), checkpoint, _of(proof, each.account))
            fresh[checkpoint.origin] = each.note
            found.append(checkpoint)
        gone = sorted(self.notes.keys() - fresh.keys())
        if gone:
            raise LedgerRefused(f"gone: {', '.join(gone)}, seen before and not shown now")
        self.notes |= fresh
        self._write()
        return found

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_name(self.path.name + ".new")
        body = {"format": FORMAT, "public_key": self.public_key, "checkpoints": self.notes}
        with draft.open("w", encoding="utf-8") as file:
            file.write(json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)


def follows(seen: Checkpoint, shown: Checkpoint, proof: Callable[[int, int], Sequence[bytes]]) -> None:
    """Refuse a checkpoint that does not continue the one seen before.

    `LedgerRefused` if it is shorter (a rollback), as long with another root, or longer without containing the other (a
    fork).
    """
    if shown.size < seen.size:
        raise LedgerRefused(
            f"ROLLBACK of {seen.origin}: {seen.size} entries were seen, {shown.size} are shown: "
            "an old copy was restored"
        )
    if shown.size == seen.size:
        if shown.root != seen.root:
            raise LedgerRefused(f"FORK of {seen.origin}: other entries than before under the same {seen.size} numbers")
        return
    hashes = proof(seen.size, shown.size)
    if not verify_consistency(seen.size, seen.root, shown.size, shown.root, hashes):
        raise LedgerRefused(
            f"FORK of {seen.origin}: the {shown.size} entries shown do not begin with the {seen.size} seen"
        )


@dataclass(frozen=True, slots=True)
class Site:
    """The REST interface of a site, as a witness reads it.

    Attributes
    ----------
    address : str
        Such as ``https://labels.example``; plain HTTP is taken for this host alone, since the token goes along.
    owner : str
        Slug of the project or population whose accounts are witnessed.
    token : str
        May read ledgers, and nothing else.
    kind : str
        ``projects`` or ``populations``, as the slug is of one or the other.
    """

    address: str
    owner: str
    token: str
    kind: str = "projects"

    def __post_init__(self) -> None:
        parts = urlsplit(self.address)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in AT_HOME):
            raise ValueError("a site's address begins with https://")

    def checkpoints(self) -> list[ShownAccount]:
        rows = self._get("checkpoints", {"limit": PAGE})
        return [ShownAccount(row["account"], row["checkpoint"]) for row in rows]

    def proof(self, account: str, old: int, size: int) -> list[bytes]:
        row = self._get("consistency", {"account": account, "old": old, "size": size})
        return [base64.b64decode(each, validate=True) for each in row["hashes"]]

    def _get(self, name: str, query: Mapping[str, Any]) -> Any:
        address = f"{self.address.rstrip('/')}/api/v1/{self.kind}/{self.owner}/ledger/{name}?{urlencode(query)}"
        request = Request(address, headers={"Authorization": f"Bearer {self.token}"})  # noqa: S310  # https, see above
        try:
            with urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
                body = answer.read(LONGEST_ANSWER + 1)
        except HTTPError as error:
            with error:
                raise LedgerRefused(f"the site answers {error.code} to {name}") from error
        except OSError as error:
            raise LedgerRefused(f"the site cannot be reached: {error}") from error
        if len(body) > LONGEST_ANSWER:
            raise LedgerRefused(f"the answer to {name} is too long")
        try:
            return json.loads(body)
        except ValueError as error:
            raise LedgerRefused(f"the answer to {name} cannot be read") from error


def witness_site(site: Site, witness: Witness) -> list[Checkpoint]:
    """Look at a site once; `LedgerRefused` as from `Witness.look`, and if an answer is no answer."""
    try:
        return witness.look(site.checkpoints(), site.proof)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise LedgerRefused(f"an answer of the site is not what it should be: {error!r}") from error


def _opened(note: str, key: bytes) -> Checkpoint:
    try:
        return open_checkpoint(note, public_key=key)
    except NoteRefused as error:
        raise LedgerRefused(f"a checkpoint is not the site's: {error}") from error


def _of(proof: Proof, account: str) -> Callable[[int, int], Sequence[bytes]]:
    return lambda old, size: proof(account, old, size)
