"""Read-only pages of the admin site."""

from learner.models import Evaluation, FeatureMatrix, ModelRelease, Round, TrainingRun
from privacy.ledger.admin import show

OF_STATES = {"list_filter": ("state",)}
show(
    Round,
    *("project", "number", "strategy", "state", "attempt", "selected", "finished_at"),
    list_filter=("state", "strategy"),
)
show(TrainingRun, "project", "version", "state", "attempt", "labels_used", "finished_at", **OF_STATES)
show(ModelRelease, "project", "version", "state", "estimator", "labels_used", "created_at", **OF_STATES)
show(Evaluation, "release", "dataset", "examples", "correct")
show(FeatureMatrix, "dataset", "version", "rows", "dimension", "created_at")
