"""What a superuser can look at; nothing of it is edited by hand."""

from django.contrib import admin
from django.http import HttpRequest

from learner.models import Evaluation, FeatureMatrix, ModelRelease, Round, TrainingRun


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows follow from services that pay for what they do, so no form may change them."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds a row here."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Nobody changes a row here."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Nobody removes a row here."""
        return False


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
