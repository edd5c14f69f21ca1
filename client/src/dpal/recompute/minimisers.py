"""Weights of convex models, each released whole."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpal.recompute.transcript import Session, Tell, Weights


def minimisers(parameters: Mapping[str, Any], session: Session, tell: Tell) -> Weights:
    """Fold the constant column (`intercept_scaling`, 0 for none) into the intercepts of `n_models` noisy minimisers."""
    n_models: int = parameters["n_models"]
    found = []
    for place in range(n_models):
        found.append(session.ask("minimiser", place))
        tell(place + 1, n_models)
    stacked = np.stack(found)
    if not parameters["intercept_scaling"]:
        return Weights(stacked, np.zeros(n_models))
    return Weights(stacked[:, :-1], stacked[:, -1] * parameters["intercept_scaling"])
