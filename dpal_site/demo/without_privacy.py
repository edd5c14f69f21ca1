"""What the answers of a demonstration's crowd would teach without privacy: possible because its people are made up.

In a project of real people nobody may do this: a model of answers as they are is a release of them.
"""

import numpy as np

from annotation.choices.answers_unit import randomizes
from annotation.models import Oracle, Project, WorkState
from learner.estimators.randomized_answers import RandomizedAnswersClassifier
from learner.linear_model import LinearModel
from learner.models import ModelRelease, TrainingRun
from learner.pools import answers as answer_selectors
from learner.pools import features, starts
from learner.pools import records as pool_selectors
from learner.pools.configuration import estimator_of
from learner.releases.evaluations import public_test_sets, score_model
from learner.rounds.services import randomization


def shares_right(release: ModelRelease) -> tuple[int, int] | None:
    """Return how many of how many public examples the answers behind a release get right unrandomised.

    None where the project randomises nothing.
    """
    project: Project = release.project
    if project.oracle != Oracle.CROWD or not randomizes(project.settings):
        return None
    run = TrainingRun.objects.filter(project=project, version=release.version, state=WorkState.DONE).latest("pk")
    featurizer = features.ready_featurizer(project)
    datasets = list(pool_selectors.pool_datasets(project))
    X = features.stacked_features(datasets, dimension=featurizer.dimension)
    known = answer_selectors.open_answers_of(project, last_consensus_id=run.last_consensus_id)
    texts, counts = randomization.gate_features(project, X)
    estimator = estimator_of(project, featurizer, prior=starts.word_prior(project))
    assert isinstance(estimator, RandomizedAnswersClassifier)
    rows = np.ascontiguousarray(X[known.examples.rows])
    estimator.fit_responses(rows, known.likelihoods, texts=texts, weights=counts)
    model = LinearModel(estimator.coef_, estimator.intercept_, tuple(project.classes), "softmax")
    score = score_model(model, public_test_sets(project).order_by("pk")[0])
    return score.correct, score.examples
