"""What changed between two versions of a model and of its project's settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from learner.linear_model import LinearModel


@dataclass(frozen=True, slots=True)
class WeightsChange:
    """How far the weights moved; intercepts are among them.

    Attributes
    ----------
    norm_before, norm : float
        L2 norms of all weights of either version.
    distance : float
        L2 norm of their difference.
    cosine : float or None
        Cosine of the angle between them; None where one of them is zero.
    """

    norm_before: float
    norm: float
    distance: float
    cosine: float | None


def weights_change(before: LinearModel, after: LinearModel) -> WeightsChange | None:
    """Compare two models; None where they have other classes or features, so that weights do not correspond."""
    if before.classes != after.classes or before.coef.shape != after.coef.shape:
        return None
    old, new = (np.concatenate([model.coef.ravel(), model.intercept]) for model in (before, after))
    norm_before, norm = float(np.linalg.norm(old)), float(np.linalg.norm(new))
    cosine = float(old @ new) / (norm_before * norm) if norm_before and norm else None
    return WeightsChange(norm_before, norm, float(np.linalg.norm(new - old)), cosine)


def changed_values(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return name, old and new value of what differs, by name; None stands for what was not there."""
    names = sorted(before.keys() | after.keys())
    return [(name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)]
