"""`manage.py ledger_counter`: what the counter outside the database is; begin it, or close what lost entries."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from dpal_site.operations import preparation
from privacy.errors import RollbackDetected
from privacy.ledger import counter


class Command(BaseCommand):
    help = (
        "Say what the ledger's counter outside the database is. `begin`: a new site's first one; for a ledger whose "
        "counter is lost only with a reason, which stays. `close`: the accounts that lost entries to a restored old "
        "copy of the database never spend again, so that the others may."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", nargs="?", choices=("show", "begin", "close"), default="show")
        parser.add_argument(
            "--trust-database",
            metavar="REASON",
            default="",
            help="with `begin`: the counter is lost, and what was spent is what the database remembers",
        )

    def handle(self, *args: Any, action: str, trust_database: str, **options: Any) -> None:
        try:
            if action == "begin":
                with preparation.as_owner():
                    counter.begin_counter(reason=trust_database)
            elif action == "close":
                for account, mark in counter.close_forgotten().items():
                    self.stdout.write(f"{account.scope}: closed, it had {mark.sequence} entries")
        except RollbackDetected as error:
            raise CommandError(str(error)) from error
        state = counter.counter_state()
        self.stdout.write(state.sentence)
        where = settings.LEDGER_COUNTER_URL.partition("?")[0] or Path(settings.LEDGER_COUNTER_PATH)
        self.stdout.write(f"it lies at {where}, which no backup of the database may take along")
        if state.problem:
            raise CommandError(
                "Put the counter back where it was. If it is lost: `ledger_counter begin --trust-database REASON`. "
                "If an old copy of the database is all there is: `ledger_counter close`."
            )
