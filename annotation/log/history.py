"""What the settings page reads: what is fixed and since when."""

from typing import Any

from annotation.models import Project
from privacy.models import EntryKind, LedgerEntry

# Those `annotation_project_under_guarantee` and `annotation_project_kind_fixed` keep.
FIXED = (
    "oracle",
    "arrival",
    "privacy_unit",
    "data_kind",
    "classes",
    "columns",
    "image_height",
    "image_width",
    "feature_dimension",
    "features",
)


def is_charged(project: Project) -> bool:
    """Say whether anything was ever reserved on one of the project's accounts."""
    accounts = [account for account in (project.pool_account_id, project.labels_account_id) if account]
    return LedgerEntry.objects.filter(account__in=accounts, kind=EntryKind.RESERVE).exists()


def fixed_settings(project: Project) -> list[tuple[str, Any]]:
    """Return what a guarantee rests on, by name."""
    found = [(name, getattr(project, name)) for name in FIXED]
    return [(name, value) for name, value in found if value not in (None, [], "")]
