"""Read-only pages of the admin site."""

from django.contrib import admin

from learner.models import Evaluation, FeatureMatrix, ModelRelease, Round, TrainingRun
from privacy.ledger.admin import ReadOnlyAdmin


@admin.register(Round)
class RoundAdmin(ReadOnlyAdmin):
    """Rounds of questions."""

    list_display = ("project", "number", "strategy", "state", "attempt", "selected", "finished_at")
    list_filter = ("state", "strategy")


@admin.register(TrainingRun)
class TrainingRunAdmin(ReadOnlyAdmin):
    """Trainings."""

    list_display = ("project", "version", "state", "attempt", "labels_used", "finished_at")
    list_filter = ("state",)


@admin.register(ModelRelease)
class ModelReleaseAdmin(ReadOnlyAdmin):
    """Released models."""

    list_display = ("project", "version", "state", "estimator", "labels_used", "created_at")
    list_filter = ("state",)


@admin.register(Evaluation)
class EvaluationAdmin(ReadOnlyAdmin):
    """Accuracies on public test sets."""

    list_display = ("release", "dataset", "examples", "correct")


@admin.register(FeatureMatrix)
class FeatureMatrixAdmin(ReadOnlyAdmin):
    """Feature files."""

    list_display = ("dataset", "version", "rows", "dimension", "created_at")
