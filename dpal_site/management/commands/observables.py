"""`manage.py observables`: write into the manual what can be read by whom; `--check` fails if it is stale."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from dpal_site.observables import DOCUMENT, written_into


class Command(BaseCommand):
    help = "Write the table of readers into docs/observables.md; with --check fail if it is stale."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.ADDONS != settings.ALL_ADDONS:
            raise CommandError(f"the manual has every add-on: set DPAL_ADDONS={','.join(settings.ALL_ADDONS)}")
        stands = DOCUMENT.read_text(encoding="utf-8")
        wanted = written_into(stands)
        if options["check"] and stands != wanted:
            raise CommandError("docs/observables.md has another table; write it by manage.py observables")
        if stands != wanted:
            DOCUMENT.write_text(wanted, encoding="utf-8")
        self.stdout.write("docs/observables.md has the table")
