"""Private training of one model."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import QuerySet
from numpy.typing import NDArray

from annotation.models import Oracle, Project
from annotation.questions.selectors import label_type, marks_spans
from annotation.work.services.attempts import Lease
from dpal.recompute.sums import NoisySums
from dpal.recompute.transcript import Transcript
from learner.errors import NotEnoughLabels
from learner.estimators.choice import PrivateEstimator
from learner.estimators.pick import PickedFit
from learner.estimators.randomized_answers import RandomizedAnswersClassifier
from learner.estimators.span_crf import PrivateSpanCrf
from learner.estimators.sums import PrivateSums
from learner.features.base import Featurizer
from learner.features.span_tables import span_features
from learner.linear_model import LinearModel
from learner.models import ModelRelease, TrainingRun
from learner.models.sums import ReleasedSums
from learner.pools import answers as answer_selectors
from learner.pools import attempts, features, records, selectors, starts
from learner.pools import records as pool_selectors
from learner.pools.attempts import FEATURES, FIT, RELEASE, TRAINING, TRAINING_PAID, Progress
from learner.pools.configuration import (
    answers_are_open,
    blocks_choice_of,
    charged_event,
    estimator_of,
    featurizer_of,
    learned_classes,
    release_estimator_of,
)
from learner.pools.keys import TRAIN_ON_GATE_OUTPUT, TRAIN_VERSION
from learner.pools.records import Examples
from learner.releases.services import checks, publishing
from learner.releases.services.publishing import StagedRelease
from learner.rounds.services import randomization, streams
from learner.strategies.blocks import weights_of_block
from privacy.accounting.event import Event
from privacy.errors import SimulationNotReleasable
from privacy.ledger import services as ledger
from privacy.ledger.faults import fault_point
from privacy.ledger.models import LedgerEntry
from privacy.wording import in_english


def train_on_questions(run: TrainingRun, lease: Lease) -> None:
    """Learn from what is known of each settled question, and release the model."""
    project = run.project
    progress = Progress(lease, TRAINING)
    progress.begin(TRAINING_PAID)
    featurizer = featurizer_of(project)
    paid = randomization.pay_for_answers(project)
    if paid is None and not answers_are_open(project):
        raise NotEnoughLabels(in_english("The answers of this project are not randomised."))
    lease.check()
    progress.begin(FEATURES)
    datasets = list(pool_selectors.pool_datasets(project))
    X = features.stacked_features(datasets, dimension=featurizer.dimension, tell=progress.tell)
    lease.check()
    if paid is not None:
        randomization.say_answers(run)
    progress.begin(FIT)
    estimator = estimator_of(project, featurizer, prior=starts.word_prior(project))
    assert isinstance(estimator, RandomizedAnswersClassifier)
    known = (
        answer_selectors.open_answers_of(project, last_consensus_id=run.last_consensus_id)
        if paid is None
        else answer_selectors.responses_of(project)
    )
    texts, counts = randomization.gate_features(project, X)
    rows = np.ascontiguousarray(X[known.examples.rows])
    estimator.fit_responses(rows, known.likelihoods, texts=texts, weights=counts)
    model = LinearModel(estimator.coef_, estimator.intercept_, tuple(project.classes), "softmax")
    lease.check()
    fault_point("training_fitted")
    gates = pool_selectors.gate_entries(datasets)
    batches = answer_selectors.spoken_entries(project)
    progress.begin(RELEASE)
    entries = gates if paid is None else [*gates, paid]
    with publishing.staged_version(
        run, model, featurizer, entries=entries, lease=lease, transcript=estimator.transcript_, paid=paid
    ) as staged:
        free = attempts.record_free_use(
            run,
            gates=gates,
            operation="training",
            purpose=TRAIN_ON_GATE_OUTPUT,
            output_digest=staged.digest,
        )
        entry, lineage = free[-1], [*gates, *free]
        if paid is not None:
            entry = attempts.record_descent(
                run,
                account=paid.account,
                parent=paid,
                operation="training on randomised answers",
                purpose=TRAIN_VERSION,
                output_digest=staged.digest,
            )
            lineage += [paid, *batches, entry]
        candidate = publishing.publish(staged, entry=entry, lineage=lineage)
    checks.check_release(release_id=candidate.pk)


@dataclass(frozen=True, slots=True)
class Earlier:
    """The sums of all blocks before, and the weight of the new one's beside them."""

    sums: NoisySums
    own_weight: float


def earlier_sums(run: TrainingRun, estimator: PrivateEstimator, featurizer: Featurizer) -> Earlier | None:
    """Return the released sums of all blocks before, None where there are none of this shape."""
    if run.block is None or not isinstance(estimator, PrivateSums):
        return None
    known = _that_add_up(run.project, estimator, featurizer)
    stored = known.first()
    if stored is None:
        return None
    every = blocks_choice_of(run.project).block_rates
    before = [every[(block or 1) - 1] for block in known.values_list("run__block__block", flat=True)]
    own = every[(run.block.block or 1) - 1]
    of_earlier, of_own = weights_of_block(before, own)
    moments = None if stored.moments is None else _matrix(stored.moments, stored.dimension)
    class_sums = estimator.with_further_classes(_matrix(stored.class_sums, stored.dimension))
    sums = NoisySums(moments, class_sums, stored.moment_variance, stored.class_variance)
    return Earlier(sums.times(of_earlier), of_own)


def _that_add_up(project: Project, estimator: PrivateSums, featurizer: Featurizer) -> QuerySet[ReleasedSums]:
    stored = ReleasedSums.objects.filter(run__project=project).order_by("-run__version")
    shapes = set(stored.order_by().values_list("shape", flat=True).distinct())
    classes = learned_classes(project)
    numbers = range(len(classes), 1, -1)
    wanted = [shape for n in numbers if (shape := _shape(classes[:n], estimator, featurizer)) in shapes]
    return stored.filter(shape__in=wanted)


def store_sums(run: TrainingRun, estimator: PrivateEstimator, featurizer: Featurizer, entry: LedgerEntry) -> None:
    """Keep what a secret block released with all before it, in the transaction that publishes its model."""
    if run.block is None or not isinstance(estimator, PrivateSums):
        return
    sums = estimator.sums_
    ReleasedSums.objects.create(
        run=run,
        entry=entry,
        shape=_shape(learned_classes(run.project), estimator, featurizer),
        moments=None if sums.moments is None else sums.moments.tobytes(),
        class_sums=sums.class_sums.tobytes(),
        dimension=sums.class_sums.shape[1],
        moment_variance=sums.moment_variance,
        class_variance=sums.class_variance,
    )


def _matrix(stored: bytes | memoryview, dimension: int) -> NDArray[np.float64]:
    return np.frombuffer(bytes(stored), dtype=np.float64).reshape(-1, dimension).copy()


def _shape(classes: Sequence[str], estimator: PrivateSums, featurizer: Featurizer) -> str:
    said = {
        "features": [featurizer.kind, featurizer.parameters()],
        "classes": list(classes),
        "constant": estimator.intercept_scaling,
        "norm_bound": estimator.norm_bound,
        "moments": estimator.moment_share > 0,
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def train_model(*, run_id: str) -> None:
    """Train on every label up to the run's last one and release the model; a missed certificate releases nothing."""
    related = ("project__pool_account", "project__labels_account", "block__committed_entry__account")
    run = TrainingRun.objects.select_related(*related).get(pk=run_id)
    with attempts.charged_attempt(run) as lease:
        if lease is None:
            return
        if run.stream_batches is not None:
            streams.release_version(run, lease)
            return
        if answer_selectors.learns_from_questions(run.project):
            train_on_questions(run, lease)
            return
        progress = Progress(lease, TRAINING)
        progress.begin(TRAINING_PAID)
        featurizer = featurizer_of(run.project)
        newest = selectors.newest_release(run.project)
        # What is not worse than the release before is picked; without one, what is not worse than the start.
        start = before = _start(run.project)
        if newest is not None and newest.features == json.loads(featurizer.to_json()):
            released = LinearModel.from_json(newest.weights).renamed(run.project.renamed_classes)
            # A model of spans says nothing of further types.
            if not released.names_spans or released.classes == learned_classes(run.project):
                before = _leaning(released, run.project)
        # A secret block builds on the release before it, which is public: disjoint blocks share no record.
        release = release_estimator_of(
            run.project,
            featurizer,
            later=(run.block.block != 1) if run.block else newest is not None,
            prior=before if run.block else start,
        )
        estimator = release
        if isinstance(release, PickedFit):
            release.before, estimator = before, release.estimator
        elif isinstance(release, PrivateSpanCrf):
            release.set_params(types=learned_classes(run.project), features=span_features())
            if before is not None:
                release.set_params(before=before.coef)
        earlier = earlier_sums(run, estimator, featurizer)
        if earlier is not None:
            # What earlier blocks have told is in their sums; the model they gave would count it twice.
            estimator.set_params(earlier=earlier.sums, own_weight=earlier.own_weight, prior=start)
        features.find_room(run.project)
        lease.check()
        reservation = attempts.reserve_attempt(
            run,
            account=selectors.training_account(run.project),
            event=_event(run, release, featurizer),
            purpose=TRAIN_VERSION,
        )
        lease.check()
        examples, (model, transcript) = _fit(run, release, featurizer, progress)
        lease.check()
        descent = _descent(run, examples, newest)
        started = [entry for entry in selectors.start_entries(run.project) if entry not in descent]
        fault_point("training_fitted")
        progress.begin(RELEASE)

        paid = [*started, *descent, reservation]
        with publishing.staged_version(
            run, model, featurizer, entries=paid, lease=lease, transcript=transcript, paid=reservation
        ) as staged:
            entry = ledger.commit(reservation=reservation, output_digest=staged.digest)
            store_sums(run, release.fit_ if isinstance(release, PickedFit) else release, featurizer, entry)
            lineage = [*started, *descent, *_free_use(run, descent, staged), entry]
            candidate = publishing.publish(staged, entry=entry, lineage=lineage)
        checks.check_release(release_id=candidate.pk)


def _free_use(run: TrainingRun, gates: list[LedgerEntry], staged: StagedRelease) -> list[LedgerEntry]:
    """Write into a crowd's pool account that the model read gate output alone."""
    if run.project.oracle != Oracle.CROWD:
        return []
    return attempts.record_free_use(
        run, gates=gates, operation="training", purpose=TRAIN_ON_GATE_OUTPUT, output_digest=staged.digest
    )


def _start(project: Project) -> LinearModel | None:
    start = starts.start_model(project)
    return starts.described_prior(project) if start is None else _leaning(start, project)


def _leaning(model: LinearModel, project: Project) -> LinearModel:
    return model.renamed(project.renamed_classes).knowing(learned_classes(project))


def _event(run: TrainingRun, estimator: PrivateEstimator, featurizer: Featurizer) -> Event:
    """Return what the release must be charged: of a secret block, the training amplified by its coins."""
    if run.block is None:
        return charged_event(run.project, estimator.event_for(featurizer.dimension))
    return records.release_event(run.project, block=run.block.block or 0)


def _fit(
    run: TrainingRun, estimator: PrivateEstimator, featurizer: Featurizer, progress: Progress
) -> tuple[Examples, tuple[LinearModel, Transcript]]:
    examples, classes = pool_selectors.labelled_examples(
        run.project, last_consensus_id=run.last_consensus_id, block=run.block
    )
    # There may be none at all. Whether anything was agreed on is up to the answers, so it must not decide whether there
    # is a model.
    progress.begin(FEATURES)
    learned: tuple[Any, Any]
    if marks_spans(run.project):
        learned = records.texts_with_spans(run.project, examples.ids, classes)
    else:
        X = features.stacked_features(examples.datasets, dimension=featurizer.dimension, tell=progress.tell)
        rows = np.ascontiguousarray(X[examples.rows])
        taught, targets = label_type(run.project).targets(classes, None, n_classes=len(run.project.classes))
        learned = rows[taught], targets
    progress.begin(FIT)
    estimator.on_step = progress.tell
    estimator.fit(*learned)
    if not estimator.releasable:
        raise SimulationNotReleasable("The noise was seeded, so the model has no guarantee.")
    classes_in_order = learned_classes(run.project)
    model = LinearModel(estimator.coef_, estimator.intercept_, classes_in_order, estimator.multiclass)
    return examples, (model, estimator.transcript_)


def _descent(run: TrainingRun, examples: Examples, newest: ModelRelease | None) -> list[LedgerEntry]:
    """Return the committed choices a model descends from: the gates of a crowd project, the rounds of a trusted one,
    and those of the release that it was picked beside.
    """
    earlier = list(selectors.lineage_of(newest)) if newest else []
    if run.block is not None:
        return earlier + ([run.block.committed_entry] if run.block.committed_entry else [])
    if run.project.oracle == Oracle.CROWD:
        return pool_selectors.gate_entries(examples.datasets)
    return earlier + [entry for entry in pool_selectors.round_entries(run.project) if entry not in earlier]
