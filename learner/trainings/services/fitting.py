"""One private training: reserve, read labels and features, fit, and release in the transaction that commits."""

import numpy as np

from annotation.answers.selectors import label_type
from annotation.models import Oracle, Project
from learner import selectors
from learner.configuration.classes import learned_classes
from learner.configuration.pool import charged_event, estimator_of
from learner.estimators.choice import FitsSlots, PrivateEstimator
from learner.features.base import Featurizer
from learner.linear_model import LinearModel
from learner.models import ModelRelease, TrainingRun
from learner.pools import secret_selectors
from learner.pools import selectors as pool_selectors
from learner.pools.selectors import Examples
from learner.pools.services import disk_space, features, projections
from learner.releases.services import checks, publishing
from learner.releases.services.publishing import StagedRelease
from learner.selectors import answers as answer_selectors
from learner.starts.services import labelled_examples, version_zero
from learner.streams.services import releases
from learner.trainings.services import channel_fitting, running_sums
from learner.work.purposes import TRAIN_ON_GATE_OUTPUT, TRAIN_VERSION
from learner.work.services import attempts
from learner.work.services.progress import FEATURES, FIT, RELEASE, TRAINING, TRAINING_PAID, Progress
from privacy.accounting.event import Event
from privacy.errors import SimulationNotReleasable
from privacy.models import LedgerEntry
from privacy.services import ledger
from privacy.services.faults import fault_point
from privacy.wording import as_message


def train_model(*, run_id: str) -> None:
    """Train on every label up to the run's last one and release the model; a missed certificate releases nothing."""
    related = ("project__pool_account", "project__labels_account", "block__committed_entry__account")
    run = TrainingRun.objects.select_related(*related).get(pk=run_id)
    with attempts.charged_attempt(run) as lease:
        if lease is None:
            return
        if run.stream_batches is not None:
            releases.release_version(run, lease)
            return
        if answer_selectors.learns_from_questions(run.project):
            channel_fitting.train_on_questions(run, lease)
            return
        progress = Progress(lease, TRAINING)
        progress.begin(TRAINING_PAID)
        featurizer = features.ready_featurizer(run.project)
        # A secret block builds on the release before it, which is public: disjoint blocks share no record.
        prior = selectors.newest_release(run.project) if run.block else None
        start = _leaning(LinearModel.from_json(prior.weights), run.project) if prior else _start(run.project)
        estimator = estimator_of(run.project, featurizer, prior=start)
        earlier = running_sums.earlier_sums(run, estimator, featurizer)
        if earlier is not None:
            # What earlier blocks have told is in their sums; the model they gave would count it twice.
            estimator.set_params(earlier=earlier.sums, own_weight=earlier.own_weight, prior=_start(run.project))
        disk_space.find_room(run.project)
        lease.check()
        reservation = attempts.reserve_attempt(
            run,
            account=selectors.training_account(run.project),
            event=_event(run, estimator, featurizer),
            purpose=TRAIN_VERSION,
        )
        lease.check()
        examples, model = _fit(run, estimator, featurizer, progress)
        lease.check()
        descent = _descent(run, examples, prior)
        started = [entry for entry in selectors.start_entries(run.project) if entry not in descent]
        fault_point("training_fitted")
        progress.begin(RELEASE)

        paid = [*started, *descent, reservation]
        with publishing.staged_version(run, model, featurizer, entries=paid, lease=lease) as staged:
            entry = ledger.commit(reservation=reservation, output_digest=staged.digest)
            running_sums.store_sums(run, estimator, featurizer, entry)
            lineage = [*started, *descent, *_free_use(run, descent, staged), entry]
            candidate = publishing.publish(staged, entry=entry, lineage=lineage)
        checks.check_release(release_id=candidate.pk)


def _free_use(run: TrainingRun, gates: list[LedgerEntry], staged: StagedRelease) -> list[LedgerEntry]:
    """Write into a crowd's pool account that the model read gate output alone."""
    if run.project.oracle != Oracle.CROWD:
        return []
    return attempts.record_free_use(
        run,
        gates=gates,
        operation=as_message("training"),
        purpose=TRAIN_ON_GATE_OUTPUT,
        output_digest=staged.digest,
    )


def _start(project: Project) -> LinearModel | None:
    """Return what a first training leans on: a model of examples, else one of the words about the classes."""
    start = labelled_examples.start_model(project)
    return version_zero.described_prior(project) if start is None else _leaning(start, project)


def _leaning(model: LinearModel, project: Project) -> LinearModel:
    """Return a model made of other classes as a training of all of today's leans on it."""
    return model.knowing(learned_classes(project))


def _event(run: TrainingRun, estimator: PrivateEstimator, featurizer: Featurizer) -> Event:
    """Return what the release must be charged: of a secret block, the training amplified by its coins."""
    if run.block is None:
        return charged_event(run.project, estimator.event_for(featurizer.dimension))
    return secret_selectors.release_event(run.project, block=run.block.block or 0)


def _fit(
    run: TrainingRun, estimator: PrivateEstimator, featurizer: Featurizer, progress: Progress
) -> tuple[Examples, LinearModel]:
    """Return what was trained on and the released weights, under the names of the project's classes."""
    examples, classes = pool_selectors.labelled_examples(
        run.project, last_consensus_id=run.last_consensus_id, block=run.block
    )
    # There may be none at all. Whether anything was agreed on is up to the answers, so it must not decide whether there
    # is a model.
    progress.begin(FEATURES)
    X = features.stacked_features(examples.datasets, dimension=featurizer.dimension, tell=progress.tell)
    rows = np.ascontiguousarray(X[examples.rows])
    taught, targets = label_type(run.project).targets(classes, None, n_classes=len(run.project.classes))
    progress.begin(FIT)
    estimator.on_step = progress.tell
    if isinstance(estimator, FitsSlots):
        # Batches are cut from all questions asked, whose number is public, and not from those agreed on.
        slots, n_slots = pool_selectors.question_slots(run.project, examples)
        estimator.fit_slots(rows[taught], targets, slots=slots[taught], n_slots=n_slots)
    else:
        estimator.fit(rows[taught], targets)
    if not estimator.releasable:
        raise SimulationNotReleasable("The noise came from a seed, so the model carries no guarantee.")
    classes_in_order = learned_classes(run.project)
    return examples, LinearModel(estimator.coef_, estimator.intercept_, classes_in_order, estimator.multiclass)


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
