"""Check the whole ledger: every cost, total, hash and settlement is computed again."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from privacy.services.audit import Verdict, audit_accounts
from privacy.services.counter import site_counter


class Command(BaseCommand):
    """Print one verdict for each account; exit with 1 if anything differs."""

    help = "Recompute every cost, total, hash and settlement of the ledger and report what differs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the account to audit and the form of the answer."""
        parser.add_argument("--scope", help="audit this account only")
        parser.add_argument("--json", action="store_true", help="print one JSON object for each account")

    def handle(self, *, scope: str | None, json: bool, **options: Any) -> None:
        """Audit and print; the counter is read first, because the ledger may grow meanwhile."""
        marks = site_counter().marks()
        found = sound = 0
        for verdict in audit_accounts(scope=scope, marks=marks):
            found += 1
            sound += not verdict.differing
            self.stdout.write(_as_json(verdict) if json else _as_text(verdict))
        if scope is not None and not found:
            raise CommandError(f"no account has the scope {scope}")
        if sound < found:
            raise CommandError(f"{found - sound} of {found} accounts differ from what they must be", returncode=1)


def _as_json(verdict: Verdict) -> str:
    return json.dumps(asdict(verdict) | {"sound": not verdict.differing})


def _as_text(verdict: Verdict) -> str:
    word = "DIFFERS" if verdict.differing else "sound"
    lines = [f"{verdict.scope}: {word}, {verdict.entries} entries, head {verdict.chain_head[:16]}"]
    for difference in verdict.differences:
        place = f"entry {difference.sequence}" if difference.sequence else "account"
        lines.append(f"  {place}, {difference.field}: {difference.stored}, must be {difference.expected}")
    if verdict.differing > len(verdict.differences):
        lines.append(f"  and {verdict.differing - len(verdict.differences)} more")
    return "\n".join(lines)
