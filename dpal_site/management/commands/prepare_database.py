"""`manage.py prepare_database`: the tables of this version, and the rights of the label process's role."""

from typing import Any

from django.core.management.base import BaseCommand

from dpal_site.operations import preparation


class Command(BaseCommand):
    help = "Apply migrations; with LABEL_DATABASE_URL, make that URL's role and give it its rights and no others."

    def handle(self, *args: Any, **options: Any) -> None:
        preparation.prepare_database(verbosity=options["verbosity"])
