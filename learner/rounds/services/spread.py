"""Rounds over gate output that ask for what an answer would tell most, spread over all that people say."""

import numpy as np
from numpy.typing import NDArray

from annotation.models import Project
from learner.answers.services import randomization
from learner.configuration.pool import featurizer_of
from learner.linear_model import LinearModel
from learner.models import ModelRelease, Round
from learner.pools.selectors import Examples
from learner.pools.services import features
from learner.rounds.services.ranked_pool import annotation_budget
from learner.selectors import answers as answer_selectors
from learner.starts.services import labelled_examples
from learner.strategies.clustered_uncertainty import ClusteredUncertainty
from privacy.mechanisms.randomness import SecureRandom


def spread_questions(chosen: Round, strategy: ClusteredUncertainty, candidates: Examples) -> NDArray[np.int64]:
    """Return the questions of a round within what the answers may cost; gate output, releases and words choose them."""
    project = chosen.project
    X = features.stacked_features(candidates.datasets, dimension=featurizer_of(project).dimension)
    affordable = annotation_budget(project).examples
    wanted = chosen.requested if affordable is None else min(chosen.requested, affordable)
    model = _model_of(project, chosen.model, X)
    counts = answer_selectors.gate_counts(project)
    asked = np.setdiff1d(np.arange(len(X)), candidates.rows)
    rows = strategy.query(X, candidates.rows, model, wanted, SecureRandom(), counts=counts, asked=asked)
    order = np.argsort(candidates.rows)
    return candidates.ids[order[np.searchsorted(candidates.rows, rows, sorter=order)]]


def _model_of(project: Project, release: ModelRelease | None, X: NDArray[np.float32]) -> LinearModel | None:
    """Return what doubts: the round's release, else the start's model or what is known without any answer."""
    if release is not None:
        return LinearModel.from_json(release.weights)
    if answer_selectors.learns_from_questions(project):
        return randomization.prior_of(project, X)
    return labelled_examples.start_model(project)
