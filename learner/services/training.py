"""One private training: reserve, read labels and features, fit, and release in the transaction that commits."""

import numpy as np
from django.db import transaction

from annotation.models import Oracle
from annotation.services.work import finish_work
from learner import pool_selectors, secret_selectors, selectors
from learner.configuration import estimator_of
from learner.errors import NotEnoughLabels
from learner.estimators.catalogue import PrivateEstimator
from learner.estimators.minibatch_svm import MiniBatchPrivateSVM
from learner.features.base import Featurizer
from learner.linear_model import LinearModel, Multiclass
from learner.models import ModelRelease, TrainingRun
from learner.pool_selectors import Examples
from learner.services import attempts, features, projections, release_gate, releases, stream_releases, warm_start
from learner.services.progress import FEATURES, FIT, RELEASE, TRAINING, TRAINING_PAID, Progress
from privacy.accounting.event import Event
from privacy.errors import SimulationNotReleasable
from privacy.models import LedgerEntry
from privacy.services import ledger
from privacy.services.faults import fault_point


def train_model(*, run_id: str) -> None:
    """Train on every label up to the run's last one and release the model; a missed certificate releases nothing."""
    related = ("project__pool_account", "project__labels_account", "block__committed_entry__account")
    run = TrainingRun.objects.select_related(*related).get(pk=run_id)
    with attempts.attempt_at(run) as lease:
        if lease is None:
            return
        if run.stream_batches is not None:
            stream_releases.release_version(run, lease)
            return
        progress = Progress(lease, TRAINING)
        progress.begin(TRAINING_PAID)
        featurizer = features.ready_featurizer(run.project)
        # A secret block builds on the release before it, which is public: disjoint blocks share no record.
        prior = selectors.latest_release(run.project) if run.block else None
        start = LinearModel.from_json(prior.weights) if prior else warm_start.start_model(run.project)
        estimator = estimator_of(run.project, featurizer, prior=start)
        lease.check()
        reservation = attempts.reserve(
            run,
            account=selectors.training_account(run.project),
            event=_event(run, estimator, featurizer),
            purpose=f"train version {run.version}",
        )
        lease.check()
        examples, model = _fit(run, estimator, featurizer, progress)
        lease.check()
        descent = _descent(run, examples, prior)
        started = [entry for entry in selectors.start_entries(run.project) if entry not in descent]
        fault_point("training_fitted")
        progress.begin(RELEASE)
        with releases.staged_release(run, model, featurizer, entries=[*started, *descent, reservation]) as staged:
            fault_point("training_staged")
            lease.check()
            with transaction.atomic():
                # The labels as they were counted at the start: what was emptied since is an empty slot, and counts.
                finish_work(row=run)
                entry = ledger.commit(reservation=reservation, output_digest=staged.digest)
                if run.project.oracle == Oracle.CROWD:
                    descent += attempts.record_free_use(
                        run,
                        gates=descent,
                        operation="training",
                        purpose=f"train version {run.version} on gate output",
                        output_digest=staged.digest,
                    )
                candidate = releases.publish(run, staged, entry=entry, lineage=[*started, *descent, entry])
                fault_point("training_published")
        release_gate.check_release(release_id=candidate.pk)


def _event(run: TrainingRun, estimator: PrivateEstimator, featurizer: Featurizer) -> Event:
    """Return what the release must be charged: of a secret block, the training amplified by its coins."""
    if run.block is None:
        return estimator.event_for(featurizer.dimension)
    return secret_selectors.release_event(run.project, block=run.block.block or 0, chosen=run.block)


def _fit(
    run: TrainingRun, estimator: PrivateEstimator, featurizer: Featurizer, progress: Progress
) -> tuple[Examples, LinearModel]:
    """Return what was trained on and the released weights, under the names of the project's classes."""
    examples, classes = pool_selectors.labelled_examples(
        run.project, last_consensus_id=run.last_consensus_id, block=run.block
    )
    # Whether a secret block was answered at all is secret, too.
    if not len(classes) and run.block is None:
        raise NotEnoughLabels("There is no label to train on.")
    progress.begin(FEATURES)
    X = features.stacked_features(examples.datasets, dimension=featurizer.dimension, tell=progress.tell)
    rows = np.ascontiguousarray(X[examples.rows])
    progress.begin(FIT)
    estimator.on_step = progress.tell
    if isinstance(estimator, MiniBatchPrivateSVM):
        # Batches are cut from all questions asked, whose number is public, and not from those agreed on.
        slots, n_slots = pool_selectors.question_slots(run.project, examples)
        estimator.fit_slots(rows, classes, slots=slots, n_slots=n_slots)
    else:
        estimator.fit(rows, classes)
    if not estimator.releasable:
        raise SimulationNotReleasable("The noise came from a seed, so the model carries no guarantee.")
    multiclass: Multiclass = "softmax" if isinstance(estimator, MiniBatchPrivateSVM) else "one_vs_rest"
    return examples, LinearModel(estimator.coef_, estimator.intercept_, tuple(run.project.classes), multiclass)


def _descent(run: TrainingRun, examples: Examples, prior: ModelRelease | None) -> list[LedgerEntry]:
    """Return the committed choices a model descends from: the gates of a crowd project, the rounds of a trusted one,
    and what its features were found by.

    The model of a secret block descends from its own block and from all that the release before it descends from.
    """
    found = projections.projection_entries(run.project)
    if run.block is not None:
        earlier = list(selectors.lineage_of(prior)) if prior else found
        return earlier + ([run.block.committed_entry] if run.block.committed_entry else [])
    if run.project.oracle == Oracle.CROWD:
        return pool_selectors.gate_entries(examples.datasets)
    return found + pool_selectors.round_entries(run.project)
