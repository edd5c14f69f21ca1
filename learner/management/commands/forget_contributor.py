"""`manage.py forget_contributor SLUG < NAME`: erase what a project holds of a contributor, or say what that is."""

import getpass
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.data.services.forgetting import request_forgetting
from annotation.errors import ForgettingRefused
from annotation.models import Project
from annotation.work.services.history import note_action
from learner.rounds.services.forgetting import ForgettingPreview, forget_contributor, preview_forgetting


class Command(BaseCommand):
    """Read the name from standard input, where no list of processes and no shell history shows it."""

    help = "Erase what a project holds of a contributor; the name is read from standard input."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument("--dry-run", action="store_true", help="say what would happen and change nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        project = Project.objects.select_related("pool_account").filter(slug=options["slug"]).first()
        if project is None:
            raise CommandError("there is no project of that name")
        name = sys.stdin.readline().rstrip("\n") if not sys.stdin.isatty() else getpass.getpass("Contributor: ")
        try:
            self._say(preview_forgetting(project=project, name=name))
            if options["dry_run"]:
                return
            actor = f"command: {getpass.getuser()}"
            asked = request_forgetting(project=project, name=name, actor=actor, send=False)
        except ForgettingRefused as refusal:
            raise CommandError(str(refusal)) from refusal
        note_action(actor=actor, route="command:forget_contributor", arguments={"slug": project.slug})
        forget_contributor(job_id=asked.job_id)
        asked.refresh_from_db()
        if asked.finished_at is None:
            raise CommandError("another worker has it in hand; the project's page shows when it is done")
        self.stdout.write(f"Forgotten. Keyed digest: {asked.reference}")

    def _say(self, preview: ForgettingPreview) -> None:
        traces = preview.traces
        epsilon, delta = preview.promise.together
        versions = ", ".join(str(release.version) for release in preview.releases) or "none"
        self.stdout.write(
            f"{traces.records} records, {traces.waiting_questions} open questions and {traces.answers} answers go.\n"
            f"Releases that used them, and stay: {versions}. For all of them together the guarantee is "
            f"epsilon {epsilon:.6g}, delta {delta:.3g}."
        )
