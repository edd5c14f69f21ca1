"""Whether more answers still help, written beside a version: post-processing of released models and gate output."""

import json

import numpy as np
from numpy.typing import NDArray

from learner.features.base import Featurizer
from learner.linear_model import LinearModel
from learner.models import ModelRelease, ReleaseState, StoppingAdvice, TrainingRun
from learner.strategies.stopping import StabilizedPredictions

RULE = StabilizedPredictions()


def advise(
    run: TrainingRun,
    model: LinearModel,
    featurizer: Featurizer,
    *,
    texts: NDArray[np.float32],
    counts: NDArray[np.float64],
) -> StoppingAdvice | None:
    """Compare a model with the versions released before it on what passed the gate; None while those are too few.

    Only versions that read the same columns and know the same classes can be compared. Whoever publishes the version
    stores the row with it.
    """
    offered = ModelRelease.objects.filter(
        project=run.project,
        version__lt=run.version,
        features=json.loads(featurizer.to_json()),
        weights__classes=list(model.classes),
    ).exclude(state=ReleaseState.CANDIDATE)
    before = list(offered.order_by("-version").values_list("weights", flat=True)[: RULE.comparisons])
    if len(before) < RULE.comparisons or not len(texts):
        return None
    compared = [*(LinearModel.from_json(weights) for weights in reversed(before)), model]
    found = RULE.advise([one.leaders(one.decision_function(texts)) for one in compared], counts)
    return StoppingAdvice(
        models_compared=len(compared),
        agreement=found.agreement,
        threshold=RULE.threshold,
        moved=found.moved,
        stop=found.stop,
    )
