"""What a released model says when parts of it are left out at random: predictions over several draws."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from learner.linear_model import LinearModel
from learner.strategies.scoring import default_block_rows

# Ranking the gate's output hides nothing, so its draws may be the same ones each time: one order for all who look.
DRAWS_SEED: Final = 0


@dataclass(frozen=True, slots=True)
class DrawStatistics:
    """How sure a model is of each example over all draws.

    Parameters
    ----------
    mean : ndarray of float64, shape (n, n_classes)
        Class probabilities averaged over the draws.
    variance : ndarray of float64, shape (n,)
        Variance of a probability over the draws, summed over the classes, in [0, 1].
    """

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]

    @property
    def confidence(self) -> NDArray[np.float64]:
        """Averaged probability of the leading class, shape (n,), in [1 / n_classes, 1]."""
        leading: NDArray[np.float64] = self.mean.max(axis=1, initial=0.0)
        return leading


def statistics_over_draws(
    X: NDArray[np.float32], candidates: NDArray[np.int64], model: LinearModel, *, draws: int, dropout_rate: float
) -> DrawStatistics:
    r"""Predict with `draws` thinned copies of the model and sum up what they say.

    Parameters
    ----------
    X : ndarray of float32, shape (rows, d)
        Features, usually a memory map.
    candidates : ndarray of int64, shape (n,)
        Rows to predict.
    model : LinearModel
        A released model. In each draw every weight is left out with probability `dropout_rate`, all classes at once,
        and the others are divided by :math:`1 - p`: for texts, the model is asked again without some of the words.
    draws : int
        Number T of draws, >= 1.
    dropout_rate : float
        Probability p in [0, 1); at 0 all draws are the model itself.

    Raises
    ------
    ValueError
        If an argument is out of range or the model does not fit the features.

    References
    ----------
    .. [1] Gal, Ghahramani, "Dropout as a Bayesian approximation", ICML 2016, section 4.
    """
    check_draws(draws, dropout_rate)
    if model.dimension != X.shape[1]:
        raise ValueError(f"model has {model.dimension} weights a class, the features have {X.shape[1]} columns")
    thinned = 1 if dropout_rate == 0 else draws
    weights = thinned_weights(model, draws=thinned, dropout_rate=dropout_rate)
    mean = np.empty((len(candidates), len(model.classes)))
    variance = np.empty(len(candidates))
    start = 0
    for values in _blocks(X, candidates, weights):
        stop = start + len(values)
        by_draw = values.reshape(len(values), thinned, -1) + model.intercept
        flat = by_draw.reshape(len(values) * thinned, -1)
        shares = model.probabilities(flat[:, 0] if len(model.coef) == 1 else flat)
        shares = shares.reshape(len(values), thinned, -1)
        mean[start:stop] = shares.mean(axis=1)
        variance[start:stop] = shares.var(axis=1).sum(axis=1)
        start = stop
    return DrawStatistics(mean, variance)


def check_draws(draws: int, dropout_rate: float) -> None:
    """Refuse a number of draws or a rate that has no meaning."""
    if draws < 1:
        raise ValueError(f"draws must be >= 1, got {draws}")
    if not 0 <= dropout_rate < 1:
        raise ValueError(f"dropout_rate must be within [0, 1), got {dropout_rate}")


def thinned_weights(model: LinearModel, *, draws: int, dropout_rate: float) -> NDArray[np.float32]:
    """Return the weights of every draw side by side, shape (d, draws * outputs), the outputs of a draw together."""
    masks = np.random.default_rng(DRAWS_SEED).random((draws, 1, model.dimension)) >= dropout_rate
    thinned = masks * model.coef / (1 - dropout_rate)
    return np.ascontiguousarray(thinned.reshape(-1, model.dimension).T, dtype=np.float32)


def _blocks(
    X: NDArray[np.float32], candidates: NDArray[np.int64], weights: NDArray[np.float32]
) -> Iterator[NDArray[np.float32]]:
    step = default_block_rows(*weights.shape)
    for start in range(0, len(candidates), step):
        yield X[candidates[start : start + step]] @ weights
