"""Say which projects, accounts and limits cover a contributor; for whoever holds the key of pseudonyms."""

import json
import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.data.who_lost_what import who_lost_what
from annotation.errors import ForgettingRefused
from privacy.errors import UnsoundCombination


class Command(BaseCommand):
    """Read a name from standard input, so that no list of processes shows it, and print one JSON object."""

    help = "Read a contributor's name from standard input; print the accounts and limits that cover them, no record."

    def handle(self, **options: Any) -> None:
        """Answer; nothing is written down of who was asked about."""
        name = sys.stdin.readline().rstrip("\r\n")
        try:
            answer = who_lost_what(name=name)
        except (ForgettingRefused, UnsoundCombination) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(asdict(answer), indent=2))
