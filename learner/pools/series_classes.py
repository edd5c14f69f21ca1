"""Other classes for a project that has learned: what was paid for goes on with them, or the classes stay."""

from collections.abc import Sequence
from typing import Any

from annotation.choices.refusals import refuse_broken
from annotation.models import Project
from learner.configuration.classes import learned_classes
from learner.configuration.pool import estimator_of, featurizer_of
from learner.estimators.sums import PrivateSums
from learner.linear_model import LinearModel
from learner.models import TrainingRun, WarmStart
from learner.pools import secret_selectors
from privacy.accounting.events import SecretBlockEvent
from privacy.wording import as_message


def refuse_leaving_series(*, project: Project, before: Sequence[str], **_signal: Any) -> None:
    """Refuse classes under which what was released could not be gone on with; `before` are those learned so far."""
    now = learned_classes(project)
    if len(before) == len(now):
        return
    if set(before) - set(now):
        _refuse_merging_sums(project)
    if set(now) - set(before):
        _refuse_unknown_start(project, now)
    _refuse_another_price(project, before)


def _refuse_merging_sums(project: Project) -> None:
    """Keep the columns of noisy sums that later blocks are added to."""
    if not secret_selectors.labels_in_secret(project) or not TrainingRun.objects.filter(project=project).exists():
        return
    if isinstance(estimator_of(project, featurizer_of(project)), PrivateSums):
        refuse_broken(
            {
                "classes": as_message(
                    "Noisy sums of secret blocks have a column for each class, and the next block is added to them. "
                    "Two columns added have twice the noise of the others, for which the model has no proof: after "
                    "the first training these classes stay apart."
                )
            }
        )


def _refuse_unknown_start(project: Project, now: Sequence[str]) -> None:
    """Keep a merge under which the first model was made: it knows nothing of the class that would come back."""
    for stored in WarmStart.objects.filter(dataset__project=project):
        try:
            LinearModel.from_json(stored.weights).knowing(now)
        except ValueError:
            rule = as_message("The first model was made of labelled examples under this merge, so it stays.")
            refuse_broken({"classes": rule})


def _refuse_another_price(project: Project, before: Sequence[str]) -> None:
    """Refuse classes with which the next block costs more than the series gives it; nothing without a series.

    Such a training would be charged as if nobody had kept its block secret.
    """
    if not secret_selectors.labels_in_secret(project) or not secret_selectors.has_series(project):
        return
    # A series gives each of its blocks the same, so the last one speaks for those to come.
    last = secret_selectors.n_blocks(project)
    if not isinstance(secret_selectors.release_event(project, block=last), SecretBlockEvent):
        refuse_broken(
            {
                "classes": as_message(
                    "The series of secret blocks was paid for with {n} classes, and a training on another number would "
                    "cost more than it gives a block. A slightly smaller epsilon of one training makes room.",
                    n=len(before),
                )
            }
        )
