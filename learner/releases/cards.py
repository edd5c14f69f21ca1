"""What a list of projects says of their models."""

from collections.abc import Collection

from django.db.models import Sum

from annotation.projects.selectors import CardModel
from learner.models import ModelRelease, ReleaseState


def models_of(projects: Collection[int]) -> dict[int, CardModel]:
    """Return the newest release of each project that has one, measured over all its public test sets together."""
    newest = (
        ModelRelease.objects.filter(project__in=projects, state=ReleaseState.RELEASED)
        .order_by("project", "-version")
        .distinct("project")
    )
    measured = (
        ModelRelease.objects.filter(pk__in=newest.values("pk"))
        .annotate(
            examples=Sum("evaluations__examples"),
            right=Sum("evaluations__correct"),
            constant=Sum("evaluations__constant_correct"),
        )
        .values_list("project", "version", "examples", "right", "constant")
    )
    return {
        project: CardModel(version, right / examples if examples else None, constant / examples if examples else None)
        for project, version, examples, right, constant in measured
    }
