"""`manage.py verify_release FOLDER`: is a downloaded release complete, signed, and made of its transcript?"""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from dpal.recompute import how_exactly
from learner.errors import ArtifactCorrupt
from learner.releases.artifacts.files import recompute_weights, verify_release
from learner.releases.storage import signer


class Command(BaseCommand):
    """Check a folder with the files of one release."""

    help = (
        "Check a release's files, signature and transcript, from which its weights are recomputed; exit code 1 if not."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="folder with all files of one release")
        parser.add_argument("--public-key", help="base64 key of the site that released it; default: this site's own")

    def handle(self, *args: Any, **options: Any) -> None:
        folder: Path = options["folder"]
        if not folder.is_dir():
            raise CommandError(f"{folder} is no folder")
        try:
            digests = verify_release(folder, public_key=options["public_key"] or signer().public_key)
            difference = recompute_weights(folder)
        except ArtifactCorrupt as error:
            raise CommandError(f"NOT GENUINE: {error}") from error
        for name, digest in sorted(digests.items()):
            self.stdout.write(f"{digest}  {name}")
        self.stdout.write(self.style.SUCCESS("Complete, unchanged and signed."))
        if difference is None:
            self.stdout.write("Version 0 is made of words alone and has no transcript.")
        else:
            self.stdout.write(f"Weights recomputed from the transcript {how_exactly(difference)}.")
