"""Pick of a model between a fit and the one before it, from noisy counts of right answers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpal.recompute.transcript import Array, Session, Weights

# Parts of the way from the model before to the fit at which a candidate lies.
GRID = (0.0, 0.25, 0.5, 0.75, 1.0)


def picked(parameters: Mapping[str, Any], fitted: Weights, session: Session) -> Weights:
    """Return the candidate that was picked: by noisy differences that pass a bar, or by the number that was drawn."""
    fitted = Weights(fitted.coef, fitted.intercept, str(parameters["fit_multiclass"]))
    before = Weights(parameters["coef"], parameters["intercept"], str(parameters["multiclass"]))
    grid = [float(part) for part in parameters.get("grid", GRID)]
    candidates = weights_between(before, fitted, grid)
    answer = session.ask("right_answers", [(each.coef, each.intercept) for each in candidates])
    return candidates[place_of(answer, float(parameters["bar"]), grid, flattery=float(parameters["flattery"]))]


def place_of(answer: Array, bar: float, grid: Sequence[float] = GRID, *, flattery: float = 0.0) -> int:
    """Return the place of the candidate that is ahead by more than the bar; of a bar of 0 the one that was drawn.

    By `flattery` rows the fit looks better on its own rows than on others, and a candidate on the way by its part.
    """
    if not bar:
        return int(answer[0])
    ahead = answer - flattery * np.array(grid[1:])
    return int(ahead.argmax()) + 1 if ahead.max() > bar else 0


def weights_between(before: Weights, fitted: Weights, grid: Sequence[float] = GRID) -> list[Weights]:
    """Return the models at these parts of the way from one to the other; at 0 `before` as it is, at 1 the fit.

    Of softmax scores neither the length nor what all classes have in common names a class, so `before` is taken at the
    length of the fit, about its mean.
    """
    start, end = (before.coef, before.intercept), (fitted.coef, fitted.intercept)
    if fitted.multiclass == "softmax":
        start, end = _about_mean(*start), _about_mean(*end)
        ratio = np.linalg.norm(end[0]) / max(float(np.linalg.norm(start[0])), 1e-300)
        start = (ratio * start[0], ratio * start[1])
    ends = {0.0: before, 1.0: fitted}
    return [
        ends.get(part)
        or Weights((1 - part) * start[0] + part * end[0], (1 - part) * start[1] + part * end[1], fitted.multiclass)
        for part in grid
    ]


def _about_mean(coef: Array, intercept: Array) -> tuple[Array, Array]:
    return (coef, intercept) if len(coef) == 1 else (coef - coef.mean(axis=0), intercept - intercept.mean())
