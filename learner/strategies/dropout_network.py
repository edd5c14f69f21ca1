"""MC dropout with a small network that learns from the released model what it says about the gate's output."""

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from learner.errors import ExtraMissing
from learner.linear_model import LinearModel
from learner.strategies.draws import DRAWS_SEED, DrawStatistics, check_draws
from learner.strategies.scoring import default_block_rows, score_blocks

HIDDEN_UNITS = 64
STUDY_STEPS = 150
STUDY_RATE = 0.02
# More than this many texts teach a network of this size little more.
MOST_STUDIED = 8192


def deep_installed() -> bool:
    """Say whether the extra `deep` is installed, without loading it."""
    return find_spec("torch") is not None


def statistics_over_dropout(
    X: NDArray[np.float32], candidates: NDArray[np.int64], model: LinearModel, *, draws: int, dropout_rate: float
) -> DrawStatistics:
    """Predict `draws` times with hidden units left out at random.

    Labels never reach the network: it is fitted to the probabilities that the released model gives to the candidates,
    so that all of it is post-processing of the release and of what passed the gate. Where the network, short of some
    of its units, no longer agrees with itself, candidates like these are few.

    Parameters
    ----------
    X : ndarray of float32, shape (rows, d)
        Features, usually a memory map.
    candidates : ndarray of int64, shape (n,)
        Rows to predict.
    model : LinearModel
        A released model.
    draws : int
        Number of predictions, >= 1.
    dropout_rate : float
        Chance that a draw leaves out a hidden unit, in [0, 1).

    Raises
    ------
    ExtraMissing
        If the extra `deep` is not installed.
    ValueError
        If an argument is out of range or the model does not fit the features.

    References
    ----------
    .. [1] Gal, Ghahramani, "Dropout as a Bayesian approximation", ICML 2016.
    .. [2] Hinton, Vinyals, Dean, "Distilling the knowledge in a neural network", 2015.
    """
    check_draws(draws, dropout_rate)
    mean, variance = np.empty((len(candidates), len(model.classes))), np.empty(len(candidates))
    if not len(candidates):
        return DrawStatistics(mean, variance)
    torch = _torch()
    probabilities = np.concatenate(
        [model.probabilities(values) for values in score_blocks(X, model, candidates=candidates)]
    )
    source = torch.Generator().manual_seed(DRAWS_SEED)
    studied = np.unique(np.linspace(0, len(candidates) - 1, min(len(candidates), MOST_STUDIED)).astype(np.int64))
    weights = _student(torch, source, X[candidates[studied]], probabilities[studied], dropout_rate)
    masks = _masks(torch, source, (draws, 1, HIDDEN_UNITS), dropout_rate)
    step = default_block_rows(X.shape[1], draws * HIDDEN_UNITS)
    for start in range(0, len(candidates), step):
        rows = torch.from_numpy(np.ascontiguousarray(X[candidates[start : start + step]]))
        with torch.no_grad():
            shares = softmax(_outputs(torch, weights, rows, masks).numpy().astype(np.float64), axis=-1)
        mean[start : start + step] = shares.mean(axis=0)
        variance[start : start + step] = shares.var(axis=0).sum(axis=-1)
    return DrawStatistics(mean, variance)


def _torch() -> Any:
    if not deep_installed():
        raise ExtraMissing("MC dropout is not installed on this site: it needs the extra `deep`.")
    import torch  # noqa: PLC0415  # optional

    return torch


def _student(
    torch: Any, source: Any, rows: NDArray[np.float32], probabilities: NDArray[np.float64], dropout_rate: float
) -> list[Any]:
    """Fit a network with one hidden layer and dropout to class probabilities; equal inputs give equal weights."""
    inputs, targets = torch.from_numpy(np.ascontiguousarray(rows)), torch.from_numpy(probabilities.astype(np.float32))
    shapes = [(inputs.shape[1], HIDDEN_UNITS), (HIDDEN_UNITS,), (HIDDEN_UNITS, targets.shape[1]), (targets.shape[1],)]
    # Rows have a norm of about one whatever their width, so the first layer needs no narrower start.
    spreads = [1.0, 1.0, HIDDEN_UNITS**-0.5, 0.0]
    weights = [
        (torch.randn(shape, generator=source) * spread).requires_grad_()
        for shape, spread in zip(shapes, spreads, strict=True)
    ]
    optimizer = torch.optim.Adam(weights, lr=STUDY_RATE)
    for _ in range(STUDY_STEPS):
        mask = _masks(torch, source, (1, len(inputs), HIDDEN_UNITS), dropout_rate)
        logs = torch.log_softmax(_outputs(torch, weights, inputs, mask)[0], dim=1)
        optimizer.zero_grad()
        (-(targets * logs).sum(dim=1).mean()).backward()
        optimizer.step()
    return weights


def _masks(torch: Any, source: Any, shape: tuple[int, ...], dropout_rate: float) -> Any:
    """Return which hidden units stay, scaled so that their sum keeps its mean."""
    return (torch.rand(shape, generator=source) >= dropout_rate).float() / (1 - dropout_rate)


def _outputs(torch: Any, weights: list[Any], rows: Any, masks: Any) -> Any:
    """Return one row of outputs for each mask and row, shape (masks, rows, classes)."""
    hidden = torch.relu(rows @ weights[0] + weights[1])
    return (hidden * masks) @ weights[2] + weights[3]
