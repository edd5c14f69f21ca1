"""Who takes part in a project."""

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from annotation.models import (
    Label,
    Membership,
    Project,
)


def memberships_of(project: Project) -> QuerySet[Membership]:
    """Return who takes part, with the number of answers each gave."""
    answers = Label.objects.filter(annotator=OuterRef("user"), query__project=project, superseded_at=None)
    counted = answers.values("annotator").annotate(n=Count("pk")).values("n")
    return (
        Membership.objects.filter(project=project)
        .select_related("user")
        .annotate(label_count=Coalesce(Subquery(counted), 0))
        .order_by("role", "user__username")
    )
