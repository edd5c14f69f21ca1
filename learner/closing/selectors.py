"""What is left of a project that is deleted."""

from annotation.models import Project
from learner.models import ModelRelease
from privacy.models import LedgerEntry


def what_stays(project: Project) -> dict[str, int]:
    """Return how much of a project stays when it is deleted: entries of its accounts, releases, lines of its log."""
    accounts = [account for account in (project.pool_account_id, project.labels_account_id) if account is not None]
    return {
        "entries": LedgerEntry.objects.filter(account__in=accounts).count(),
        "releases": ModelRelease.objects.filter(project=project).count(),
        "actions": project.actions.count(),
    }
