"""Carry a model made from words alone over to the texts that are there: clusters that start at its classes."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from dpal.recompute.channel import about_centre
from learner.estimators.rows import one_thread_per_call
from learner.linear_model import LinearModel

# Inverse temperature of a cosine between a text and a class, for texts of public encoders.
INVERSE_TEMPERATURE = 10.0
# How sharply texts of one cluster lie around its middle, against each other; above the temperature of single texts,
# since a middle is told apart better than one description.
CONCENTRATION = 15.0
# The description counts for this share of the texts a class would have if all had equally many.
ANCHOR_SHARE = 0.3
ROUNDS = 15


def adapt_to_texts(
    prior: LinearModel, X: NDArray[np.floating], weights: NDArray[np.floating] | None = None
) -> LinearModel:
    r"""Return the prior moved to the texts: directions of a mixture on the sphere that is fitted to all of them.

    A few words about a class stand beside its texts, seldom in their middle. Each class gets a cluster that starts at
    the prior's direction and stays tied to it; texts and clusters then settle by expectation and maximisation of a
    mixture of von Mises-Fisher laws with one concentration [1]_. It reads no label.

    Parameters
    ----------
    prior : LinearModel
        A model at epsilon 0, for rows of the same features.
    X : ndarray of floats, shape (n, d)
        Texts that are already public, such as the gate's output.
    weights : ndarray of floats, shape (n,), optional
        How often each was said, > 0; their square roots count, so that one frequent text is no cluster.

    Returns
    -------
    LinearModel
        For the same rows and classes, with the cosine to a cluster's middle at `INVERSE_TEMPERATURE`.

    References
    ----------
    .. [1] Banerjee, Dhillon, Ghosh, Sra, "Clustering on the unit hypersphere using von Mises-Fisher distributions",
       2005, section 4.1.
    """
    rows, counts = checked_rows(X, prior.dimension), checked_weights(weights, len(X))
    centre, scale = middle_of(rows, counts)
    rows = (rows - centre) / scale
    shares = np.sqrt(counts)
    anchors = _unit(_directions(prior))
    pull = ANCHOR_SHARE * shares.sum() / len(anchors) * anchors
    middles = anchors
    with one_thread_per_call():
        for _round in range(ROUNDS):
            belongs = softmax(CONCENTRATION * (rows @ middles.T), axis=1) * shares[:, None]
            middles = _unit(belongs.T @ rows + pull)
    return linear_model(INVERSE_TEMPERATURE / scale * middles, np.zeros(len(middles)), centre, prior.classes)


def linear_model(
    weights: NDArray[np.float64], intercept: NDArray[np.float64], centre: NDArray[np.float64], classes: tuple[str, ...]
) -> LinearModel:
    """Return the model whose class scores are ``weights @ (x - centre) + intercept``; `weights` has shape (K, d)."""
    found = about_centre(weights, intercept, centre)
    return LinearModel(found.coef, found.intercept, classes, "softmax")


def middle_of(rows: NDArray[np.float64], counts: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return the weighted middle of the rows and their root mean square distance from it, 1 where they coincide."""
    centre: NDArray[np.float64] = np.average(rows, axis=0, weights=counts)
    distance = float(np.sqrt(((rows - centre) ** 2).sum(axis=1).mean()))
    return centre, distance or 1.0


def checked_rows(X: NDArray[np.floating], dimension: int) -> NDArray[np.float64]:
    """Return rows as float64 once they are at least one and of that many columns."""
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or not len(rows) or rows.shape[1] != dimension:
        raise ValueError(f"X must have shape (n >= 1, {dimension}), got {rows.shape}")
    if not np.isfinite(rows).all():
        raise ValueError("X must hold finite numbers only")
    return rows


def checked_weights(weights: NDArray[np.floating] | None, count: int) -> NDArray[np.float64]:
    if weights is None:
        return np.ones(count)
    counts = np.asarray(weights, dtype=np.float64)
    if counts.shape != (count,) or not (np.isfinite(counts).all() and (counts > 0).all()):
        raise ValueError(f"weights must be {count} finite numbers > 0")
    return counts


def _directions(model: LinearModel) -> NDArray[np.float64]:
    coef = np.concatenate([-model.coef, model.coef]) if len(model.coef) == 1 else model.coef
    directions: NDArray[np.float64] = coef - coef.mean(axis=0)
    return directions


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)
