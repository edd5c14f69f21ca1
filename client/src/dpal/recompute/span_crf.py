"""Weights of a conditional random field over spans from noisy gradients."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpal.recompute.transcript import Array, Session, Tell, Weights
from dpal.spans.crf import TRANSITION

# Score of two neighbouring tokens with one tag, before anything is learned: spans and what lies between are long.
STAY = 1.0
MOMENTUM = 0.7
# How far noise of all steps may carry a weight, and the longest step over the mean gradient.
MOST_NOISE, LONGEST_STEP = 0.3, 50.0


def span_start(n_tags: int, n_features: int) -> Array:
    """Return the weights of a chain that knows nothing but that tags stay, shape (K, d + K)."""
    return np.hstack([np.zeros((n_tags, n_features)), STAY / TRANSITION * np.eye(n_tags)])


def span_crf(parameters: Mapping[str, Any], session: Session, tell: Tell) -> Weights:
    """Follow noisy gradients with Nesterov's momentum; the weights are the mean over the second half of the steps.

    The parameters are `steps`, `dimension` (features and tags), `n_classes` (tags), `sigma` of a gradient and `prior`:
    None or a mapping with `coef`, shape (K, dimension). Of each row the last K weights are those of the tags before.
    The session answers `count` and `gradient`.
    """
    steps, n_tags, sigma = int(parameters["steps"]), int(parameters["n_classes"]), float(parameters["sigma"])
    shape = (n_tags, int(parameters["dimension"]))
    prior = parameters["prior"]
    weights = span_start(n_tags, shape[1] - n_tags) if prior is None else np.array(prior["coef"], dtype=np.float64)
    if weights.shape != shape:
        raise ValueError(f"prior must have shape {shape}, got {weights.shape}")
    count = max(float(session.ask("count")[0]), 1.0)
    length = min(LONGEST_STEP, MOST_NOISE * count / (sigma * math.sqrt(steps)))
    speed, total = np.zeros(shape), np.zeros(shape)
    for step in range(steps):
        speed = MOMENTUM * speed + length / count * session.ask("gradient", weights + MOMENTUM * speed)
        weights = weights + speed
        if step >= steps // 2:
            total += weights
        tell(step + 1, steps)
    return Weights(total / (steps - steps // 2), np.zeros(n_tags))
