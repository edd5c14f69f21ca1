"""A version trained on what is known of each question: that is paid for or no secret, so it costs nothing more."""

import numpy as np

from annotation.work.services.attempts import Lease
from learner.answers.services import randomization
from learner.configuration.pool import answers_are_open, estimator_of
from learner.errors import NotEnoughLabels
from learner.estimators.randomized_answers import RandomizedAnswersClassifier
from learner.linear_model import LinearModel
from learner.models import TrainingRun
from learner.pools import selectors as pool_selectors
from learner.pools.services import features
from learner.releases.services import checks, publishing
from learner.selectors import answers as answer_selectors
from learner.starts.services import version_zero
from learner.trainings.services import stopping
from learner.work.purposes import TRAIN_ON_GATE_OUTPUT, TRAIN_VERSION
from learner.work.services import attempts
from learner.work.services.progress import FEATURES, FIT, RELEASE, TRAINING, TRAINING_PAID, Progress
from privacy.services.faults import fault_point
from privacy.wording import as_message


def train_on_questions(run: TrainingRun, lease: Lease) -> None:
    """Learn from what is known of each settled question, and release the model.

    Where answers are randomised, what the new ones agree on is said first, and only what was said is read.
    """
    project = run.project
    progress = Progress(lease, TRAINING)
    progress.begin(TRAINING_PAID)
    featurizer = features.ready_featurizer(project)
    paid = randomization.pay_for_answers(project)
    if paid is None and not answers_are_open(project):
        raise NotEnoughLabels("The answers of this project are not randomised.")
    lease.check()
    progress.begin(FEATURES)
    datasets = list(pool_selectors.pool_datasets(project))
    X = features.stacked_features(datasets, dimension=featurizer.dimension, tell=progress.tell)
    lease.check()
    if paid is not None:
        randomization.say_answers(run)
    progress.begin(FIT)
    estimator = estimator_of(project, featurizer, prior=version_zero.word_prior(project))
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
    advice = stopping.advise(run, model, featurizer, texts=texts, counts=counts)
    lease.check()
    fault_point("training_fitted")
    gates = pool_selectors.gate_entries(datasets)
    batches = answer_selectors.spoken_entries(project)
    progress.begin(RELEASE)
    entries = gates if paid is None else [*gates, paid]
    with publishing.staged_version(run, model, featurizer, entries=entries, lease=lease) as staged:
        free = attempts.record_free_use(
            run,
            gates=gates,
            operation=as_message("training"),
            purpose=TRAIN_ON_GATE_OUTPUT,
            output_digest=staged.digest,
        )
        entry, lineage = free[-1], [*gates, *free]
        if paid is not None:
            entry = attempts.record_descent(
                run,
                account=paid.account,
                parent=paid,
                operation=as_message("training on randomised answers"),
                purpose=TRAIN_VERSION,
                output_digest=staged.digest,
            )
            lineage += [paid, *batches, entry]
        candidate = publishing.publish(staged, entry=entry, lineage=lineage, advice=advice)
    checks.check_release(release_id=candidate.pk)
