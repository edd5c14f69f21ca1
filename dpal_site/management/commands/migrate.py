"""`manage.py migrate`: as the owner of the tables, and afterwards the site's role may use them."""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate

from dpal_site.operations import preparation
from dpal_site.operations.roles import UnfitRole


class Command(migrate.Command):
    help = f"{migrate.Command.help} Runs as the owner of the tables, and gives the site's role its rights."

    def handle(self, *args: Any, **options: Any) -> None:
        with preparation.as_owner():
            preparation.refuse_tables_of_another_version()
            super().handle(*args, **options)
            try:
                preparation.grant_roles()
            except UnfitRole as error:
                raise CommandError(str(error)) from error
