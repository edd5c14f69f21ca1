"""Recompute an account's whole history and name every entry and field that differs from what is stored."""

# Costs come from the stored events, totals from those costs, hashes from the stored fields. Entries come as rows, from
# a database or from a document; each stands beside what it says about its parent.

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Protocol

from privacy.accounting.composition import Limits, rho_limit
from privacy.accounting.events import Event, PeopleEvent, SecretSampleEvent, event_from_json
from privacy.errors import UnsoundCombination
from privacy.ledger import rules
from privacy.ledger.auditor.chain import NO_HASH, entry_hash
from privacy.ledger.rules import Charge

KEPT_DIFFERENCES = 20
LIMITS = tuple(each.name for each in fields(Limits))
AMOUNTS = ("epsilon_nano", "delta_atto", "rho_nano", "mi_nano")
OPEN, COMMITTED, CHARGED, VOIDED, DERIVED = range(1, 6)
TOTAL_FIELDS = (
    "epsilon_spent_nano",
    "delta_spent_atto",
    "rho_spent_nano",
    "mi_spent_nano",
    "epsilon_reserved_nano",
    "delta_reserved_atto",
    "rho_reserved_nano",
    "mi_reserved_nano",
    "open_reservations",
)
SETTLED_AS = {"commit": COMMITTED, "charge": CHARGED, "void": VOIDED}


class Account(Protocol):
    pk: Any
    scope: str
    unit: str
    adjacency: str
    filter: str


class KnownMark(Protocol):
    """Length of a chain that somebody else saw."""

    @property
    def sequence(self) -> int:
        """The last entry seen."""

    @property
    def head(self) -> str:
        """Its hash."""

    @property
    def closed(self) -> bool:
        """True if the account is known to have lost entries."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that is not what it must be; `sequence` 0 stands for the account itself."""

    sequence: int
    field: str
    stored: str
    expected: str


@dataclass(slots=True)
class Verdict:
    scope: str
    entries: int = 0
    chain_head: str = NO_HASH
    differing: int = 0
    differences: list[Difference] = field(default_factory=list)

    def expect(self, sequence: int, name: str, stored: object, expected: object) -> None:
        """Note a difference; only the first few are kept in full."""
        if stored == expected:
            return
        self.differing += 1
        if len(self.differences) < KEPT_DIFFERENCES:
            self.differences.append(Difference(sequence, name, str(stored), str(expected)))


@dataclass(slots=True)
class _Priced:
    event: Event
    charge: Charge


class AccountAudit:
    def __init__(self, account: Account, mark: KnownMark | None, *, counted: bool = True) -> None:
        self.account = account
        # One that is closed is known to have lost entries: what is left of it must be right, and nothing more.
        self.mark = None if mark and mark.closed else mark
        self.counted = counted and not (mark and mark.closed)
        self.verdict = Verdict(scope=account.scope)
        self.totals = dict.fromkeys(TOTAL_FIELDS, 0)
        self.limits: Limits | None = None
        self.states = bytearray(1)  # by sequence number; zero for entries nothing can settle or descend from
        self.standing_children: dict[int, int] = {}
        self.opened: set[str] = set()
        # Of the projects of a population whose people have several records: their standing samples by sequence number.
        self.samples: dict[str, dict[int, SecretSampleEvent]] = {}
        self.priced: dict[str, _Priced | str] = {}

    def run(self, rows: Iterable[dict[str, Any]]) -> Verdict:
        """Return the verdict over the entries, oldest first; memory grows by one byte with each."""
        row: dict[str, Any] | None = None
        for row in rows:
            self._check(row)
            self.verdict.entries = row["sequence"]
            self.verdict.chain_head = row["hash"]
        self._check_account(row)
        self._check_counter()
        return self.verdict

    def _check(self, row: dict[str, Any]) -> None:
        verdict, sequence = self.verdict, row["sequence"]
        verdict.expect(sequence, "sequence", sequence, verdict.entries + 1)
        verdict.expect(sequence, "previous_hash", row["previous_hash"], verdict.chain_head)
        verdict.expect(sequence, "hash", row["hash"], entry_hash(row))
        if self.mark and self.mark.sequence == sequence:
            verdict.expect(sequence, "hash in the counter outside the database", self.mark.head, row["hash"])
        self.states.extend(bytes(max(0, sequence + 1 - len(self.states))))
        if row["parent_id"] is not None:
            verdict.expect(sequence, "parent's account", row["parent_account"], self.account.pk)
        match row["kind"]:
            case "grant" | "limit_change":
                self._check_limits(row)
            case "reserve":
                self._check_reservation(row)
            case "commit" | "charge" | "void":
                self._check_settlement(row)
            case "post_processing":
                self._check_post_processing(row)
            case other:
                verdict.expect(sequence, "kind", other, "a known kind")
        for name in TOTAL_FIELDS:
            verdict.expect(sequence, name, row[name], self.totals[name])
        # From here on the stored totals count, so that one wrong entry is one difference.
        self.totals = {name: row[name] for name in TOTAL_FIELDS}

    def _check_limits(self, row: dict[str, Any]) -> None:
        sequence = row["sequence"]
        self.verdict.expect(sequence, "kind", row["kind"], "grant" if sequence == 1 else "limit_change")
        try:
            event = json.loads(row["event_json"])
            limits = Limits(**{name: event[name] for name in LIMITS})
            fixed = {name: event[name] for name in ("scope", "unit", "adjacency", "filter")}
        except (ValueError, KeyError) as error:
            self.verdict.expect(sequence, "event_json", repr(error), "terms and limits")
            return
        for name, stored in fixed.items():
            self.verdict.expect(sequence, f"event_json {name}", stored, getattr(self.account, name))
        if self.account.filter == "zcdp":
            conversion_delta = limits.delta_limit_atto - limits.delta_sum_limit_atto
            sound = rho_limit(epsilon_nano=limits.epsilon_limit_nano, delta_atto=conversion_delta)
            if (limits.rho_limit_nano or 0) > sound:
                self.verdict.expect(sequence, "event_json rho_limit_nano", limits.rho_limit_nano, sound)
        self.limits = limits
        self._check_within_limits(row)

    def _check_within_limits(self, row: dict[str, Any]) -> None:
        if self.limits is None:
            self.verdict.expect(row["sequence"], "limit", "none", "a grant before anything is spent")
            return
        pure = self.account.filter == "pure"
        currency, limit = (
            ("epsilon_spent_nano", self.limits.epsilon_limit_nano)
            if pure
            else ("rho_spent_nano", self.limits.rho_limit_nano or 0)
        )
        for name, most in ((currency, limit), ("delta_spent_atto", self.limits.delta_sum_limit_atto)):
            if row[name] > most:
                self.verdict.expect(row["sequence"], name, row[name], f"at most {most}")

    def _check_reservation(self, row: dict[str, Any]) -> None:
        sequence = row["sequence"]
        self.states[sequence] = OPEN
        self._add(row, spent=1, reserved=1)
        self._check_within_limits(row)
        priced = self._price(row)
        if priced is None:
            return
        for name, expected in asdict(priced.charge).items():
            self.verdict.expect(sequence, name, row[name], expected)
        self._check_step(row, priced.event)
        if isinstance(priced.event, PeopleEvent):
            self._check_samples(sequence, priced.event)

    def _check_samples(self, sequence: int, people: PeopleEvent) -> None:
        if people.records_per_person > 1 and isinstance(people.event, SecretSampleEvent):
            samples = self.samples.setdefault(people.scope, {})
            samples[sequence] = people.event
            standing = [event for place, event in samples.items() if self.states[place] != VOIDED]
            try:
                rules.refuse_mixed_samples(standing)
            except UnsoundCombination as error:
                self.verdict.expect(sequence, "event_json", error, "samples whose prices add up")

    def _check_step(self, row: dict[str, Any], event: Event) -> None:
        sequence, parent, before = row["sequence"], row["parent_sequence"], None
        if parent is not None:
            if self._state(row) not in (OPEN, COMMITTED, CHARGED):
                self.verdict.expect(sequence, "parent", parent, "a standing reservation that opened the series")
                return
            self.standing_children[parent] = self.standing_children.get(parent, 0) + 1
        try:
            before = None if parent is None else event_from_json(json.loads(row["parent_event"]))
            rules.check_step(
                event,
                before,
                opened=event.kind in self.opened,
                continued=parent is not None and self.standing_children[parent] > 1,
            )
        except (ValueError, UnsoundCombination) as error:
            self.verdict.expect(sequence, "parent", parent, error)
        if not event.needs_parent:
            self.opened.add(event.kind)

    def _check_settlement(self, row: dict[str, Any]) -> None:
        sequence, kind = row["sequence"], row["kind"]
        self._add(row, spent=-1 if kind == "void" else 0, reserved=-1)
        if self._state(row) != OPEN:
            self.verdict.expect(sequence, "parent", row["parent_sequence"], "a reservation not settled before")
            return
        parent = row["parent_sequence"]
        self.states[parent] = SETTLED_AS[kind]
        for name in AMOUNTS:
            self.verdict.expect(sequence, name, row[name], row[f"parent_{name}"])
        if kind == "void":
            if self.standing_children.get(parent, 0):
                self.verdict.expect(sequence, "kind", kind, "no void while the series it opened stands")
            grandparent = row["parent_parent_sequence"]
            if grandparent in self.standing_children:
                self.standing_children[grandparent] -= 1

    def _check_post_processing(self, row: dict[str, Any]) -> None:
        sequence = row["sequence"]
        self.states[sequence] = DERIVED
        if row["parent_kind"] != "commit" and self._state(row) not in (COMMITTED, DERIVED):
            self.verdict.expect(sequence, "parent", row["parent_sequence"], "a committed entry")
        for name in AMOUNTS:
            self.verdict.expect(sequence, name, row[name], 0)
        self._price(row)

    def _price(self, row: dict[str, Any]) -> _Priced | None:
        text = row["event_json"]
        if text not in self.priced:
            try:
                event = event_from_json(json.loads(text))
                self.priced[text] = _Priced(event, rules.price(self.account, event))
            except (ValueError, UnsoundCombination) as error:
                self.priced[text] = str(error)
        priced = self.priced[text]
        if isinstance(priced, str):
            self.verdict.expect(row["sequence"], "event_json", priced, "an event with a proven cost")
            return None
        return priced

    def _add(self, row: dict[str, Any], *, spent: int, reserved: int) -> None:
        for currency in AMOUNTS:
            name, unit = currency.rsplit("_", 1)
            self.totals[f"{name}_spent_{unit}"] += spent * (row[currency] or 0)
            self.totals[f"{name}_reserved_{unit}"] += reserved * (row[currency] or 0)
        self.totals["open_reservations"] += reserved

    def _state(self, row: dict[str, Any]) -> int:
        parent = row["parent_sequence"]
        return self.states[parent] if parent is not None and parent < row["sequence"] else 0

    def _check_account(self, last: dict[str, Any] | None) -> None:
        for name in LIMITS:
            # From the row of the last entry, so that account and entries are seen at one moment.
            stored = getattr(self.account, name) if last is None else last[f"account_{name}"]
            nothing = None if name == "rho_limit_nano" else 0
            self.verdict.expect(0, name, stored, getattr(self.limits, name) if self.limits else nothing)

    def _check_counter(self) -> None:
        if self.counted and not self.mark and self.verdict.entries:
            self.verdict.expect(self.verdict.entries, "mark in the counter outside the database", "none", "a mark")
        if self.mark and self.mark.sequence > self.verdict.entries:
            self.verdict.expect(
                self.verdict.entries, "last entry", self.verdict.entries, f"{self.mark.sequence} as the counter says"
            )
