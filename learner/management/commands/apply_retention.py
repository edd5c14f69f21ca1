"""`manage.py apply_retention [SLUG ...] [--dry-run]`: erase what is over its period, or say what that is."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.data.services import retention
from annotation.models import Project
from learner.rounds.services import forgetting


class Command(BaseCommand):
    """Do now what the site does by itself every hour."""

    help = "Erase what is older than its project keeps it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", nargs="*", help="projects; all without any")
        parser.add_argument("--dry-run", action="store_true", help="say what would go and when, and change nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        projects = Project.objects.order_by("slug")
        if options["slug"]:
            projects = projects.filter(slug__in=options["slug"])
            if missing := set(options["slug"]) - set(projects.values_list("slug", flat=True)):
                raise CommandError(f"there is no project called {', '.join(sorted(missing))}")
        for project in projects:
            if not options["dry_run"]:
                gone = forgetting.apply_retention(project_id=project.pk)
                self.stdout.write(f"{project.slug}: " + (", ".join(f"{n} {kind}" for kind, n in gone.items()) or "-"))
                continue
            for due in retention.what_is_due(project):
                kept = "kept" if due.days is None else f"{due.days} days"
                following = f", next {due.following:%Y-%m-%d}" if due.following else ""
                self.stdout.write(f"{project.slug}: {due.kind} ({kept}): {due.now} due{following}")
