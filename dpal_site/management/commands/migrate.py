"""`manage.py migrate`: as the owner of the tables, and afterwards the site's role may use them."""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate

from dpal_site.operations import preparation
from dpal_site.operations.roles import UnfitRole


class Command(migrate.Command):
    help = f"{migrate.Command.help} Runs as the owner of the tables, and gives the site's role its rights."

    def execute(self, *args: Any, **options: Any) -> Any:
        # The checks before it ask the database as well, where the site's role may not be known yet.
        with preparation.as_owner():
            return super().execute(*args, **options)

    def handle(self, *args: Any, **options: Any) -> None:
        preparation.refuse_tables_of_another_version()
        super().handle(*args, **options)
        try:
            preparation.grant_roles()
        except UnfitRole as error:
            raise CommandError(str(error)) from error
