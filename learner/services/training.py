"""One private training: reserve, read labels and features, fit, and release in the transaction that commits."""

import numpy as np
from django.conf import settings
from django.db import transaction

from annotation.models import Oracle
from annotation.services.work import finish_work
from learner import pool_selectors, selectors
from learner.configuration import estimator_of, featurizer_of
from learner.errors import NotEnoughLabels
from learner.estimators.logistic import PrivateLogisticRegression
from learner.features.base import Featurizer
from learner.linear_model import LinearModel
from learner.models import TrainingRun
from learner.pool_selectors import Examples
from learner.services import attempts, features, releases
from learner.services.dispatch import send_on_commit
from privacy.errors import SimulationNotReleasable
from privacy.models import LedgerEntry
from privacy.services import ledger
from privacy.services.faults import fault_point


def train_model(*, run_id: str) -> None:
    """Train on every label up to the run's last one and release the model; a missed certificate releases nothing."""
    run = TrainingRun.objects.select_related("project__pool_account", "project__labels_account").get(pk=run_id)
    with attempts.attempt_at(run) as lease:
        if lease is None:
            return
        featurizer = featurizer_of(run.project)
        estimator = estimator_of(run.project, featurizer)
        reservation = attempts.reserve(
            run,
            account=selectors.training_account(run.project),
            event=estimator.event_for(featurizer.dimension),
            purpose=f"train version {run.version}",
        )
        examples, model = _fit(run, estimator, featurizer)
        descent = _descent(run, examples)
        fault_point("training_fitted")
        with releases.staged_release(run, model, featurizer, entries=[*descent, reservation]) as staged:
            fault_point("training_staged")
            lease.check()
            with transaction.atomic():
                finish_work(row=run, labels_used=len(examples.ids))
                entry = ledger.commit(reservation=reservation, output_digest=staged.digest)
                if run.project.oracle == Oracle.CROWD:
                    descent += attempts.record_free_use(
                        run,
                        gates=descent,
                        operation="training",
                        purpose=f"train version {run.version} on gate output",
                        output_digest=staged.digest,
                    )
                releases.publish(run, staged, entry=entry, lineage=[*descent, entry])
                send_on_commit(settings.PROJECT_CHANGED_TASK, project_id=run.project_id)
                fault_point("training_published")


def _fit(
    run: TrainingRun, estimator: PrivateLogisticRegression, featurizer: Featurizer
) -> tuple[Examples, LinearModel]:
    """Return what was trained on and the released weights, under the names of the project's classes."""
    examples, classes = pool_selectors.labelled_examples(run.project, last_consensus_id=run.last_consensus_id)
    if not len(classes):
        raise NotEnoughLabels("There is no label to train on.")
    X = features.stacked_features(examples.datasets, dimension=featurizer.dimension)
    estimator.fit(np.ascontiguousarray(X[examples.rows]), classes)
    if not estimator.releasable:
        raise SimulationNotReleasable("The noise came from a seed, so the model carries no guarantee.")
    return examples, LinearModel(estimator.coef_, estimator.intercept_, tuple(run.project.classes))


def _descent(run: TrainingRun, examples: Examples) -> list[LedgerEntry]:
    """Return the committed choices a model descends from: the gates of a crowd project, the rounds of a trusted one."""
    if run.project.oracle == Oracle.CROWD:
        return pool_selectors.gate_entries(examples.datasets)
    return pool_selectors.round_entries(run.project)
