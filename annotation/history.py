"""What the settings page reads: what is fixed and since when."""

from django.db.models import Field

from annotation.models import Project
from privacy.models import EntryKind, LedgerEntry

# Those `annotation_project_under_guarantee` keeps.
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


def fixed_settings(project: Project) -> list[tuple[str, str]]:
    """Return what a guarantee rests on, as names and words."""
    found = []
    for name in FIXED:
        field = Project._meta.get_field(name)
        value = getattr(project, name)
        if value in (None, [], ""):
            continue
        words = str(getattr(project, f"get_{name}_display")()) if getattr(field, "choices", None) else _words(value)
        found.append((str(field.verbose_name) if isinstance(field, Field) else name, words))
    return found


def _words(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(item["name"]) if isinstance(item, dict) else str(item) for item in value)
    return str(value)
