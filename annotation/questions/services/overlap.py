"""Questions whose answers have no majority: one more person is asked, as far as the project goes."""

from django.db.models import F

from annotation.budget.label_budget import label_budget
from annotation.models import Project, Query


def ask_one_more(*, project: Project, query: Query) -> bool:
    """Give a question without a majority to one more person, up to the project's limit; call it with its row locked."""
    if project.overlap_limit is None or query.overlap >= project.overlap_limit:
        return False
    left = label_budget(project).left
    if left is not None and left < 1:
        return False
    Query.objects.filter(pk=query.pk).update(overlap=F("overlap") + 1, open_slots=F("open_slots") + 1)
    return True
