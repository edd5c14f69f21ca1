"""`manage.py end_sessions NAME` or `--all`: whoever was logged in has to log in again."""

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from dpal_site.accounts import sessions
from dpal_site.operations import security


class Command(BaseCommand):
    help = "End every session of a person, or with --all of everybody, at once."

    def add_arguments(self, parser: CommandParser) -> None:
        group = parser.add_mutually_exclusive_group(required=True)
        group.add_argument("name", nargs="?")
        group.add_argument("--all", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            ended = sessions.end_sessions(username=None if options["all"] else options["name"])
        except User.DoesNotExist as error:
            raise CommandError(f"nobody is called {options['name']}") from error
        security.note("sessions.ended")
        self.stdout.write(f"{ended} sessions ended")
