"""Weights of softmax regression from noisy gradients."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpal.recompute.transcript import Array, Session, Tell, Weights

# Found on public tasks, see docs/results/utility.md: how far noise alone may carry a weight over all steps, from
# nothing, from names, and from examples of every class; and the longest step that does not swing to and fro.
MOST_NOISE, MOST_NOISE_FROM_NAMES, MOST_NOISE_FROM_EXAMPLES = 1.1, 1.0, 0.7
LONGEST_STEP = 9.0
# Found on ten digits, CLINC 50 and SLURP 18: how far rows reach about their mean, beside the root of what it leaves of
# their squared length. What lies further is clipped.
REACH = 0.85
# A mean is never taken to be nearly all of every row.
LONGEST_CENTER = 0.95
# Mean length of a class's weights at which a prior starts: its directions are known, its scale is not. With more labels
# a class beside the noise than this, the scale is learned from them and a start from names is as much shorter; one from
# examples of every class is worth its whole length. Found on 73 intents of CLINC and on SLURP 18.
PRIOR_LENGTH, LABELS_BESIDE_NOISE, SHORTEST_PRIOR = 10.0, 1.5, 0.5


def softmax_steps(parameters: Mapping[str, Any], session: Session, tell: Tell) -> Weights:
    """Follow noisy gradients, each over all rows about their noisy mean.

    The parameters are `steps`, `dimension` (constant column included), `n_classes`, `sigma` of a gradient,
    `center_sigma` of the sum of rows or None, `norm_bound` of a row without the constant column and `row_norm` with it,
    `intercept_scaling`, `prior`: None or a mapping with `coef` and `intercept`, and `from_examples`: whether the first
    prior was fitted to examples of every class. The session answers `count`, `row_sum` and `gradient`.
    """
    noisy_count = max(float(session.ask("count")[0]), 1.0)
    center, reach = _center(parameters, session, noisy_count)
    length = PRIOR_LENGTH if parameters["prior"] is None else _prior_length(parameters, noisy_count)
    start = start_of(parameters, center, reach, length=length)
    weights = _descend(parameters, session, noisy_count, start, (center, reach), tell)
    coef = weights[:, :-1] / reach
    intercept = weights[:, -1] * parameters["intercept_scaling"] - coef @ center
    if parameters["n_classes"] == 2:
        coef, intercept = np.diff(coef, axis=0), np.diff(intercept)
    return Weights(coef, intercept)


def _center(parameters: Mapping[str, Any], session: Session, noisy_count: float) -> tuple[Array, float]:
    """Return the mean of the rows, drawn to zero as far as noise may explain it, and how far rows reach from it."""
    if parameters["center_sigma"] is None:
        return np.zeros(parameters["dimension"] - 1), 1.0
    total = session.ask("row_sum")[:-1]
    # By James and Stein: of its squared length, so much is noise.
    signal = max(0.0, 1 - parameters["center_sigma"] ** 2 * len(total) / max(float(total @ total), 1e-300))
    center = signal * total / noisy_count
    length = float(np.linalg.norm(center)) / parameters["norm_bound"]
    if length > LONGEST_CENTER:
        center, length = center * (LONGEST_CENTER / length), LONGEST_CENTER
    return center, REACH * math.sqrt(1 - length**2)


def _descend(
    parameters: Mapping[str, Any],
    session: Session,
    noisy_count: float,
    weights: Array,
    about: tuple[Array, float],
    tell: Tell,
) -> Array:
    """Return the mean weights over the second half of the steps."""
    steps: int = parameters["steps"]
    count = noisy_count / parameters["n_classes"]
    most = MOST_NOISE
    if parameters["prior"] is not None:
        most = MOST_NOISE_FROM_EXAMPLES if parameters["from_examples"] else MOST_NOISE_FROM_NAMES
    # Noise of all steps together carries a weight by root(steps) times sigma times this over the count.
    noise = parameters["sigma"] * math.sqrt(steps)
    length = min(LONGEST_STEP, most * count / noise * parameters["row_norm"])
    total = np.zeros_like(weights)
    for step in range(steps):
        weights = weights + length / count * session.ask("gradient", weights, *about)
        if step >= steps // 2:
            total += weights
        tell(step + 1, steps)
    return total / (steps - steps // 2)


def _prior_length(parameters: Mapping[str, Any], noisy_count: float) -> float:
    if parameters["from_examples"]:
        return PRIOR_LENGTH
    noise = parameters["sigma"] * math.sqrt(parameters["steps"])
    labels: float = noisy_count / parameters["n_classes"] / noise * parameters["row_norm"]
    return max(SHORTEST_PRIOR, PRIOR_LENGTH * min(1.0, LABELS_BESIDE_NOISE / labels))


def start_of(parameters: Mapping[str, Any], center: Array, reach: float, *, length: float = PRIOR_LENGTH) -> Array:
    """Return the prior's weights on rows about the mean, at the length of a start; zeros without a prior."""
    n_classes: int = parameters["n_classes"]
    n_features: int = parameters["dimension"] - 1
    weights = np.zeros((n_classes, n_features + 1))
    if parameters["prior"] is None:
        return weights
    coef, intercept = parameters["prior"]["coef"], parameters["prior"]["intercept"]
    if coef.shape != (1 if n_classes == 2 else n_classes, n_features):
        raise ValueError(f"prior must have weights for {n_classes} classes and {n_features} columns")
    if n_classes == 2:
        coef, intercept = np.vstack([-coef, coef]) / 2, np.concatenate([-intercept, intercept]) / 2
    coef, intercept = coef * reach, intercept + coef @ center
    scale = length / max(float(np.linalg.norm(coef, axis=1).mean()), 1e-12) / parameters["norm_bound"]
    weights[:, :-1] = scale * coef
    weights[:, -1] = scale * intercept / parameters["intercept_scaling"]
    return weights
