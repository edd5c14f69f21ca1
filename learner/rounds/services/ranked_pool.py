"""The ranked pool of a crowd project: what passed the gate, ordered by the released model, within the budget."""

from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from annotation.models import Project
from annotation.statement.label_budget import label_budget
from learner.configuration.pool import featurizer_of
from learner.linear_model import LinearModel
from learner.models import Round
from learner.pools.selectors import Examples
from learner.pools.services import features
from learner.rounds.services import scoring
from learner.strategies.base import QueryStrategy
from learner.strategies.random import RandomChoice
from learner.strategies.ranked_pool import AnnotationBudget, RankedExamplePool
from learner.strategies.rows import ListedRows
from learner.strategies.uncertainty import Uncertainty
from learner.work.services.progress import Progress
from privacy.mechanisms.randomness import SecureRandom

BLANK = np.empty((0, 0), dtype=np.float32)


def leading_texts(
    chosen: Round, strategy: QueryStrategy, candidates: Examples, progress: Progress
) -> NDArray[np.int64]:
    """Return what a round asks within the budget: what the model it was opened with doubts most, or by chance."""
    project = chosen.project
    affordable = annotation_budget(project).examples
    wanted = chosen.requested if affordable is None else min(chosen.requested, affordable)
    model = scoring.scoring_model(chosen)
    if not isinstance(strategy, Uncertainty) or model is None:
        places = ListedRows(np.arange(len(candidates.ids), dtype=np.int64))
        return candidates.ids[RandomChoice().choose(BLANK, places, None, wanted, SecureRandom())]
    X = features.stacked_features(candidates.datasets, dimension=featurizer_of(project).dimension)
    rows = scoring.watched(ListedRows(candidates.rows), X, progress)
    return candidates.ids[strategy.most_uncertain(X, rows, model, wanted)]


def open_pool(
    project: Project, candidates: Examples, *, strategy: Uncertainty, model: LinearModel
) -> RankedExamplePool:
    """Rank all candidates by a released model or one of public examples, for a page that shows them."""
    X = features.stacked_features(candidates.datasets, dimension=featurizer_of(project).dimension)
    statistics = strategy.statistics(X, candidates.rows, model)
    doubts = strategy.uncertainty_of(statistics)
    return RankedExamplePool(candidates.ids, doubts, statistics.confidence, budget=annotation_budget(project))


def annotation_budget(project: Project) -> AnnotationBudget:
    """Return what the project may still ask for, in answers and in money."""
    labels = label_budget(project)
    return AnnotationBudget(
        labels=None if project.labels_limit is None else max(0, project.labels_limit - labels.asked),
        money=labels.money_left,
        price=project.price_per_label or Decimal(0),
        labels_per_example=project.overlap,
    )
