"""`manage.py export_release SLUG VERSION FILE.zip`: a release as one file, for a site without a network."""

import zipfile
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.models import Project
from learner.errors import ArtifactCorrupt
from learner.models import ReleaseState
from learner.pools import selectors
from learner.releases import storage

CHUNK = 1024 * 1024


class Command(BaseCommand):
    """Write every file of a release into a zip, each checked against its digest on the way."""

    help = "Write a released model's files into one zip file; check it elsewhere with verify_release."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument("version", help="a version number, or latest")
        parser.add_argument("file", type=Path, help="zip file to write; must not exist")

    def handle(self, *args: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["slug"]).first()
        if project is None:
            raise CommandError("there is no project of that name")
        release = selectors.find_release(project, options["version"])
        if release is None:
            raise CommandError(f"{project.slug} has no such version")
        target: Path = options["file"]
        try:
            with target.open("xb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                for name in sorted(release.digests):
                    with storage.open_file(release=release, name=name) as source, archive.open(name, "w") as sink:
                        while block := source.read(CHUNK):
                            sink.write(block)
        except FileExistsError as error:
            raise CommandError(f"{target} exists already") from error
        except ArtifactCorrupt as error:
            target.unlink()
            raise CommandError(str(error)) from error
        if release.state == ReleaseState.RETIRED:
            self.stderr.write(self.style.WARNING(f"Version {release.version} is retired: {release.retired_reason}"))
        self.stdout.write(f"{target}: version {release.version} of {project.slug}, {len(release.digests)} files.")
        self.stdout.write(f"Public key of this site: {storage.signer().public_key}")
