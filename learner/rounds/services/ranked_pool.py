"""The ranked pool of a crowd project: what passed the gate, ordered by the released model, within the budget."""

from collections.abc import Callable
from decimal import Decimal

import numpy as np

from annotation.models import Project
from annotation.statement.label_budget import label_budget
from learner.configuration.pool import featurizer_of, strategy_of
from learner.linear_model import LinearModel
from learner.models import ModelRelease
from learner.pools.selectors import Examples
from learner.pools.services import features
from learner.starts.services import warm_start
from learner.strategies.draws import DrawStatistics
from learner.strategies.ranked_pool import AnnotationBudget, RankedExamplePool
from learner.strategies.uncertainty import Uncertainty
from privacy.mechanisms.randomness import SecureRandom

Predict = Callable[[Uncertainty, LinearModel], DrawStatistics]


def open_pool(
    project: Project,
    candidates: Examples,
    *,
    strategy: str,
    model: ModelRelease | None,
    predict: Predict | None = None,
) -> RankedExamplePool:
    """Rank the candidates by the released model or one of public examples, or put them in random order without any.

    Parameters are the strategy's name and the release that a round was opened with, never a newer one. `predict` asks
    the model about all candidates in another way than here and now.
    """
    chooser = strategy_of(project, strategy)
    budget = annotation_budget(project)
    count = len(candidates.ids)
    weights = LinearModel.from_json(model.weights) if model else None
    if weights is None and chooser.needs_model:
        weights = warm_start.start_model(project)
    if isinstance(chooser, Uncertainty) and weights is not None:
        if predict is None:
            X = features.stacked_features(candidates.datasets, dimension=featurizer_of(project).dimension)
            statistics = chooser.statistics(X, candidates.rows, weights)
        else:
            statistics = predict(chooser, weights)
        uncertainty = chooser.uncertainty_of(statistics)
        return RankedExamplePool(candidates.ids, uncertainty, statistics.confidence, budget=budget)
    blank = np.empty((count, 0), dtype=np.float32)
    order = chooser.query(blank, np.arange(count, dtype=np.int64), None, count, SecureRandom())
    # Nothing is known of any of them: all are equally uncertain.
    return RankedExamplePool(candidates.ids[order], np.zeros(count), np.zeros(count), budget=budget)


def annotation_budget(project: Project) -> AnnotationBudget:
    """Return what the project may still ask for, in answers and in money."""
    labels = label_budget(project)
    return AnnotationBudget(
        labels=None if project.labels_limit is None else max(0, project.labels_limit - labels.asked),
        money=labels.money_left,
        price=project.price_per_label or Decimal(0),
        labels_per_example=project.overlap,
    )
