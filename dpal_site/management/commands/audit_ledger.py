"""Check the whole ledger: every cost, total, hash and settlement is computed again, and held against the counter."""

from argparse import ArgumentParser
from dataclasses import asdict
from json import dumps as json_of
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from privacy.ledger.audit import audit_accounts
from privacy.ledger.auditor.account import Verdict
from privacy.ledger.auditor.statement import StatementRefused, as_text, audit_statement, report
from privacy.ledger.counter import counter_state, site_counter


class Command(BaseCommand):
    """Print one verdict for each account and one for the counter; exit with 1 if anything differs."""

    help = "Recompute every cost, total, hash and settlement of the ledger and report what differs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the account to audit and the form of the answer."""
        parser.add_argument("--scope", help="audit this account only")
        parser.add_argument("--statement", type=Path, help="audit this exported file alone; asks no database")
        parser.add_argument("--public-key", default="", help="with --statement: the site's key, learnt elsewhere")
        parser.add_argument("--json", action="store_true", help="print one JSON object for each account")

    def handle(self, *, scope: str | None, json: bool, statement: Path | None, public_key: str, **options: Any) -> None:
        """Audit and print; the counter is read first, because the ledger may grow meanwhile."""
        if statement is not None:
            self._audit_file(statement, public_key)
            return
        counter = site_counter()
        marks = counter.marks()
        found = sound = 0
        for verdict in audit_accounts(scope=scope, marks=marks):
            found += 1
            sound += not verdict.differing
            self.stdout.write(_as_json(verdict) if json else as_text(verdict))
        if scope is not None and not found:
            raise CommandError(f"no account has the scope {scope}")
        state = counter_state()
        self.stdout.write(json_of(asdict(state) | {"sound": not state.problem}) if json else state.sentence)
        if sound < found:
            raise CommandError(f"{found - sound} of {found} accounts differ from what they must be", returncode=1)
        if state.problem:
            raise CommandError(state.problem, returncode=1)

    def _audit_file(self, statement: Path, public_key: str) -> None:
        try:
            findings = audit_statement(statement.read_bytes(), public_key=public_key)
        except (OSError, StatementRefused, ValueError) as error:
            raise CommandError(str(error), returncode=1) from error
        self.stdout.write(report(findings, trusted=bool(public_key)))
        if not findings.sound:
            raise CommandError("the statement is not what the site signed, or is not sound", returncode=1)


def _as_json(verdict: Verdict) -> str:
    return json_of(asdict(verdict) | {"sound": not verdict.differing})
