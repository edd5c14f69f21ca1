"""Applying a project's periods: in the database, then in the files that held something of what went."""

from collections.abc import Mapping

from annotation.models import Project
from annotation.retention.services import periods
from learner.forgetting.services import contributors


def apply_retention(*, project_id: int) -> Mapping[str, int]:
    """Erase what is over its period; done again, it finds nothing, and ends what a killed attempt left in files."""
    project = Project.objects.get(pk=project_id)
    gone = periods.erase_overdue(project=project)
    contributors.erase_from_files(project=project)
    return gone
