"""`manage.py compile_translations`: list what is not translated and compile the catalogues."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from dpal_site.catalogues import compile_catalogue, messages_in, read_catalogue

ENGLISH = "dpal_site/locale/en/LC_MESSAGES/django.po"
PACKAGES = ("dpal_site", "addons", "learner", "annotation", "privacy", "client/src/dpal/reading")


class Command(BaseCommand):
    help = "Compile locale/*/LC_MESSAGES/django.po and list the messages without a translation."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--missing", action="store_true", help="print what is not translated, as empty entries")

    def handle(self, *args: Any, **options: Any) -> None:
        path = settings.BASE_DIR / ENGLISH
        path.with_suffix(".mo").write_bytes(compile_catalogue(path))
        marked = messages_in(settings.BASE_DIR / package for package in PACKAGES)
        for path in sorted((settings.BASE_DIR / "locale").glob("*/LC_MESSAGES/django.po")):
            catalogue = read_catalogue(path)
            path.with_suffix(".mo").write_bytes(compile_catalogue(path))
            missing = [message for message in marked if not all(catalogue.get(message.key, [""]))]
            gone = set(catalogue) - {message.key for message in marked} - {""}
            self.stdout.write(f"{path.parent.parent.name}: {len(missing)} of {len(marked)} missing, {len(gone)} unused")
            if options["missing"]:
                for message in sorted(missing, key=lambda item: item.text):
                    self.stdout.write(f"{message.text!r} {message.plural!r}")
