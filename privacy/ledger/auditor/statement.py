"""Audit an exported statement from the file alone: no site, no database, no account."""

# Every cost is computed again from its event, every total, hash and settlement from the costs, and the tree from the
# hashes. The site's signature over the whole file covers the rest: names, dates, limits, verdict.

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from privacy.accounting.events import event_from_json
from privacy.ledger.auditor.account import AMOUNTS, LIMITS, TOTAL_FIELDS, AccountAudit, Verdict
from privacy.ledger.auditor.chain import EPOCH, HASHED_FIELDS
from privacy.ledger.auditor.merkle import leaf_hash, root_of
from privacy.ledger.auditor.notes import NoteRefused, open_checkpoint
from privacy.ledger.keys import SiteKey, decoded_key, is_signed

FORMAT = "dpal-statement/1"
# No text in JSON holds a bare line break, so this stands nowhere else.
SIGNED_BEFORE = b',\n"signature": '
DOCUMENT = {"format", "made_at", "accounts", "signature"}
# Whose accounts they are.
OWNERS = ("project", "population")
# Of a crowd's project: whether what people answered is protected.
ANSWERS = ("protected", "not secret")
ACCOUNT = {
    *("scope", "label", "unit", "adjacency", "filter", "opened_at"),
    *("limits", "chain_head", "checkpoint", "verdict", "entries"),
}
READING = ("when", "mechanism_in_words")
ENTRY = {*HASHED_FIELDS, "hash", *READING}
NUMBERS = ("id", "account_id", "sequence", "delta_atto", "created_at", *TOTAL_FIELDS)
NUMBERS_OR_NONE = ("parent_id", "epsilon_nano", "rho_nano", "mi_nano")
MOST = 2**63
PRICED = ("reserve", "post_processing")


class StatementRefused(Exception):
    """The file is no statement."""


@dataclass(slots=True)
class StatedAccount:
    pk: int
    scope: str
    unit: str
    adjacency: str
    filter: str


@dataclass(slots=True)
class Findings:
    """Findings of an audit of a statement.

    Attributes
    ----------
    public_key : str
        The key that signed the file, base64: who gave no key to check with compares it with the site's.
    verdicts : list of Verdict
        One for the document itself, whose scope is empty, and one for each account.
    """

    public_key: str = ""
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        return not any(verdict.differing for verdict in self.verdicts)


def signature_of(digest: str, key: SiteKey) -> bytes:
    """Return the end of a statement: the site's signature over all bytes before it, by their SHA-256."""
    made = {
        "algorithm": "Ed25519",
        "public_key": key.public_key,
        "sha256": digest,
        "signature": base64.b64encode(key.sign(_message(digest))).decode(),
    }
    return SIGNED_BEFORE + json.dumps(made).encode() + b"}\n"


def audit_statement(
    content: bytes, *, public_key: str = "", heads: Sequence[str] = (), seen: Mapping[str, str] | None = None
) -> Findings:
    """Audit a statement.

    Parameters
    ----------
    content : bytes
        The file, to the last byte.
    public_key : str
        The site's key, base64, learnt elsewhere; without it a file that somebody wrote anew under a key of their own
        is not told from the site's.
    heads : sequence of str
        Chain heads noted earlier, which must still be hashes of entries.
    seen : mapping of str to str
        Checkpoints that a witness kept, by the names of their logs.

    Raises
    ------
    StatementRefused
        If the file is no statement at all.
    """
    document = _document(content)
    findings = Findings()
    whole = Verdict(scope="")
    findings.verdicts.append(whole)
    findings.public_key = _check_signature(content, document["signature"], whole, public_key)
    whole.expect(0, "format", document["format"], FORMAT)
    _check_moment(document["made_at"], "made_at", whole)
    scopes = [account.get("scope") if isinstance(account, dict) else None for account in document["accounts"]]
    whole.expect(0, "accounts", len(set(map(str, scopes))), len(scopes))
    known: set[str] = set()
    logs: dict[str, list[str]] = {}
    for account in document["accounts"]:
        verdict = _AccountDocument(account, findings.public_key).audit()
        findings.verdicts.append(verdict)
        hashes = _hashes(account)
        known.update(hashes)
        logs[_origin(account)] = hashes
    for head in heads:
        whole.expect(0, "chain head noted earlier", head, head if head in known else "a hash of some entry")
    _check_seen(seen or {}, logs, findings.public_key, whole)
    return findings


def as_text(verdict: Verdict) -> str:
    word = "DIFFERS" if verdict.differing else "sound"
    lines = [f"{verdict.scope}: {word}, {verdict.entries} entries, head {verdict.chain_head[:16]}", *_lines(verdict)]
    return "\n".join(lines)


def report(findings: Findings, *, trusted: bool) -> str:
    """Return all verdicts on a statement; without a trusted key it says which one to compare."""
    document, *accounts = findings.verdicts
    lines = [f"document: {'DIFFERS' if document.differing else 'as the site signed it'}", *_lines(document)]
    lines += [as_text(verdict) for verdict in accounts]
    if not trusted:
        lines.append(f"signed by {findings.public_key}: is that the site's key? Name it with --public-key.")
    return "\n".join(lines)


def _lines(verdict: Verdict) -> list[str]:
    lines = []
    for difference in verdict.differences:
        place = f"entry {difference.sequence}" if difference.sequence else "account" if verdict.scope else "document"
        lines.append(f"  {place}, {difference.field}: {difference.stored}, must be {difference.expected}")
    if verdict.differing > len(verdict.differences):
        lines.append(f"  and {verdict.differing - len(verdict.differences)} more")
    return lines


class _AccountDocument:
    def __init__(self, account: Any, public_key: str) -> None:
        self.account, self.public_key = account, public_key
        named = account.get("scope") if isinstance(account, dict) else ""
        self.verdict = Verdict(scope=str(named))

    def audit(self) -> Verdict:
        """Return what is found; where fields are missing or of another type, the rest cannot be audited."""
        try:
            self._audit()
        except (_Stopped, ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            if not isinstance(error, _Stopped):
                self.verdict.expect(self.verdict.entries + 1, "entry", repr(error), "one that can be audited")
        return self.verdict

    def _audit(self) -> None:
        account = self._fields(0, self.account, ACCOUNT)
        for name in ("scope", "label", "unit", "adjacency", "filter", "opened_at", "chain_head", "checkpoint"):
            self._typed(0, name, account[name], isinstance(account[name], str), "a text")
        entries = account["entries"]
        self._typed(0, "entries", type(entries).__name__, isinstance(entries, list) and bool(entries), "entries")
        self._fields(0, account["limits"], set(LIMITS))
        first = self._entry(1, entries[0])
        terms = StatedAccount(
            first["account_id"], *(account[name] for name in ("scope", "unit", "adjacency", "filter"))
        )
        walk = AccountAudit(terms, None, counted=False)
        # What is found of fields and types stands beside what the walk finds.
        walk.verdict = self.verdict
        walk.run(self._rows(terms))
        self.verdict.expect(0, "chain_head", account["chain_head"], self.verdict.chain_head)
        self._check_checkpoint()
        self._check_verdict(account["verdict"])
        opened = _check_moment(account["opened_at"], "opened_at", self.verdict)
        if opened is not None and opened > EPOCH + timedelta(microseconds=first["created_at"] + 999_999):
            self.verdict.expect(0, "opened_at", account["opened_at"], "no later than its first entry")

    def _rows(self, terms: StatedAccount) -> Iterator[dict[str, Any]]:
        limits = {f"account_{name}": self.account["limits"][name] for name in LIMITS}
        earlier: dict[int, dict[str, Any]] = {}
        for number, entry in enumerate(self.account["entries"], start=1):
            self._entry(number, entry)
            self.verdict.expect(number, "account_id", entry["account_id"], terms.pk)
            parent = earlier.get(entry["parent_id"])
            if parent is None and entry["parent_id"] is not None:
                self.verdict.expect(number, "parent_id", entry["parent_id"], "an earlier entry of this account")
            self._check_reading(number, entry)
            row = {name: entry[name] for name in (*HASHED_FIELDS, "hash")}
            row["created_at"] = EPOCH + timedelta(microseconds=entry["created_at"])
            if parent is None:
                row["parent_id"] = None
            yield row | _about(parent, earlier) | limits
            # The walk has compared the hash; from here on the entry is what others name.
            earlier[entry["id"]] = entry

    def _entry(self, number: int, entry: Any) -> dict[str, Any]:
        found = self._fields(number, entry, ENTRY)
        for name, value in found.items():
            is_number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < MOST
            if name in NUMBERS:
                self._typed(number, name, value, is_number, "a number")
            elif name in NUMBERS_OR_NONE:
                self._typed(number, name, value, value is None or is_number, "a number or nothing")
            else:
                empty = name == "idempotency_key" and value is None
                self._typed(number, name, value, empty or isinstance(value, str), "a text")
        # Numbers place entries; what is placed elsewhere is not looked for there.
        self._typed(number, "sequence", found["sequence"], found["sequence"] == number, str(number))
        return found

    def _check_reading(self, number: int, entry: dict[str, Any]) -> None:
        moment = EPOCH + timedelta(microseconds=entry["created_at"])
        self.verdict.expect(number, "when", entry["when"], moment.isoformat())
        words = ""
        if entry["kind"] in PRICED:
            try:
                words = event_from_json(json.loads(entry["event_json"])).summary()
            except ValueError:
                # The walk says so of the event itself.
                words = entry["mechanism_in_words"]
        self.verdict.expect(number, "mechanism_in_words", entry["mechanism_in_words"], words)

    def _check_checkpoint(self) -> None:
        try:
            shown = open_checkpoint(self.account["checkpoint"], public_key=decoded_key(self.public_key))
        except (NoteRefused, ValueError) as error:
            self.verdict.expect(0, "checkpoint", str(error), "signed by the site")
            return
        leaves = _leaves(_hashes(self.account))
        self.verdict.expect(0, "checkpoint size", shown.size, len(leaves))
        self.verdict.expect(0, "checkpoint root", shown.root.hex(), root_of(leaves).hex())

    def _check_verdict(self, said: Any) -> None:
        names = {"sound", "scope", "entries", "chain_head", "differing", "differences"}
        verdict = self._fields(0, said, names)
        expected = {
            "scope": self.verdict.scope,
            "entries": self.verdict.entries,
            "chain_head": self.verdict.chain_head,
            "sound": True,
            "differing": 0,
            "differences": [],
        }
        for name, value in expected.items():
            self.verdict.expect(0, f"verdict {name}", verdict[name], value)

    def _fields(self, number: int, found: Any, names: set[str]) -> dict[str, Any]:
        self._typed(number, "entry" if number else "account", type(found).__name__, isinstance(found, dict), "fields")
        self._typed(
            number, "fields", sorted(found.keys() ^ names), found.keys() == names, "[]: none missing or unknown"
        )
        return dict(found)

    def _typed(self, number: int, name: str, stored: object, fits: bool, expected: str) -> None:
        if not fits:
            self.verdict.expect(number, name, repr(stored)[:200], expected)
            raise _Stopped


class _Stopped(Exception):
    """Ends the audit of an account; the reason is noted."""


def _document(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content, object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError) as error:
        raise StatementRefused(f"the file is no JSON document: {error}") from error
    fields = [DOCUMENT | {owner} for owner in OWNERS]
    if (
        not isinstance(found, dict)
        or found.keys() - {"answers"} not in fields
        or not isinstance(found["accounts"], list)
    ):
        raise StatementRefused(f"a statement has the fields {', '.join(sorted(DOCUMENT))}, and {' or '.join(OWNERS)}")
    if found.get("answers", ANSWERS[0]) not in ANSWERS:
        raise StatementRefused(f"answers are one of {', '.join(ANSWERS)}")
    return found


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice, and programs would read one or the other")
    return found


def _check_signature(content: bytes, said: Any, whole: Verdict, public_key: str) -> str:
    """Note it where the site did not sign all the bytes before; return the key to go on with."""
    before, _, _ = content.rpartition(SIGNED_BEFORE)
    digest = hashlib.sha256(before).hexdigest()
    try:
        key, made = said["public_key"], base64.b64decode(said["signature"], validate=True)
        raw = decoded_key(public_key or key)
    except (KeyError, TypeError, ValueError) as error:
        whole.expect(0, "signature", str(error), "one of the site")
        return public_key
    whole.expect(0, "signature algorithm", said.get("algorithm"), "Ed25519")
    whole.expect(0, "signature public_key", key, public_key or key)
    whole.expect(0, "signature sha256", said.get("sha256"), digest)
    fits = is_signed(_message(digest), made, public_key=raw)
    whole.expect(0, "signature", "of other bytes or another key" if not fits else "fits", "fits")
    return public_key or str(key)


def _check_seen(seen: Mapping[str, str], logs: Mapping[str, list[str]], public_key: str, whole: Verdict) -> None:
    for origin, note in seen.items():
        if origin not in logs:
            continue
        try:
            kept = open_checkpoint(note, public_key=decoded_key(public_key), origin=origin)
        except (NoteRefused, ValueError) as error:
            whole.expect(0, "witnessed checkpoint", str(error), "signed by the site")
            continue
        leaves = _leaves(logs[origin])
        whole.expect(0, f"entries of {origin}", len(leaves), max(len(leaves), kept.size))
        if kept.size <= len(leaves):
            shown = root_of(leaves[: kept.size]).hex()
            whole.expect(0, f"root of the first {kept.size} entries of {origin}", shown, kept.root.hex())


def _check_moment(text: Any, name: str, verdict: Verdict) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        verdict.expect(0, name, repr(text)[:200], "a time")
        return None


def _about(parent: dict[str, Any] | None, earlier: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
    grandparent = None if parent is None else earlier.get(parent["parent_id"])
    found = {f"parent_{name}": None if parent is None else parent[name] for name in (*AMOUNTS, "sequence", "kind")}
    return found | {
        "parent_account": None if parent is None else parent["account_id"],
        "parent_event": None if parent is None else parent["event_json"],
        "parent_parent_sequence": None if grandparent is None else grandparent["sequence"],
    }


def _hashes(account: Any) -> list[str]:
    entries = account.get("entries") if isinstance(account, dict) else None
    found = [entry.get("hash") if isinstance(entry, dict) else None for entry in entries or ()]
    return [each if isinstance(each, str) else "" for each in found]


def _leaves(hashes: Sequence[str]) -> list[bytes]:
    return [leaf_hash(_bytes_of(each)) for each in hashes]


def _bytes_of(hexadecimal: str) -> bytes:
    try:
        return bytes.fromhex(hexadecimal)
    except ValueError:
        # No entry has such a hash, and the walk says which one it is.
        return b""


def _origin(account: Any) -> str:
    note = account.get("checkpoint") if isinstance(account, dict) else ""
    return str(note).partition("\n")[0]


def _message(digest: str) -> bytes:
    return f"{FORMAT}\n{digest}\n".encode()
