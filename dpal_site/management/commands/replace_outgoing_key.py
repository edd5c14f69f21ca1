"""`manage.py replace_outgoing_key`: new secrets of webhooks, invitations and studies, the old ones good for a while."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.work.services import tokens
from dpal_site.operations import security


class Command(BaseCommand):
    help = "Derive the secrets that others hold from a new key; what was derived from the old one counts for a while."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--kept-days", type=int, default=30, help="how long the old key counts; 0: no longer")

    def handle(self, *args: Any, **options: Any) -> None:
        tokens.replace_outgoing_key(kept=timedelta(days=options["kept_days"]))
        security.note("outgoing_key.replaced")
        self.stdout.write(f"replaced; secrets under the old key count for {options['kept_days']} more days")
