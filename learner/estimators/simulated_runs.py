"""Many simulated runs of mini-batch descent at once: what experiments average over, and nothing to release."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def simulate_minibatch_runs(
    X: NDArray[np.floating],
    signs: NDArray[np.floating],
    orders: NDArray[np.intp],
    *,
    batch_size: int,
    noise_scale: float,
    step_size: float,
    radius: float,
    regularization: float = 0.0,
    checkpoints: Sequence[int] | None = None,
    rng: np.random.Generator,
) -> NDArray[np.floating]:
    r"""Return averaged iterates of the two-class steps of `MiniBatchPrivateSVM`, for all runs side by side.

    Simulation, no guarantee: floats from a seeded generator stand for the exact noise. One product serves the
    batches of all runs.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows, constant column included; results have its precision.
    signs : ndarray of shape (n,)
        Labels -1 or +1.
    orders : ndarray of int, shape (n_runs, m)
        Rows each run sees, in order; a last batch that is not full is left out.
    batch_size : int
        Rows in a batch, >= 1.
    noise_scale : float
        Scale of the Gamma-distributed norm of the noise on the sum of a batch, >= 0.
    step_size, radius, regularization : float
        As in `MiniBatchPrivateSVM`.
    checkpoints : sequence of int, optional
        Numbers of steps, increasing, after which to report; the last step by default.
    rng : numpy.random.Generator
        Source of the noise.

    Returns
    -------
    ndarray of shape (n_checkpoints, n_runs, d)

    Raises
    ------
    ValueError
        If there is no full batch, or checkpoints do not increase or lie beyond the last step.
    """
    n_runs, n_steps, dimension = len(orders), orders.shape[1] // batch_size, X.shape[1]
    wanted = [n_steps] if checkpoints is None else list(checkpoints)
    if n_steps < 1 or wanted != sorted(set(wanted)) or not 1 <= wanted[0] <= wanted[-1] <= n_steps:
        raise ValueError(f"checkpoints must increase within [1, {n_steps}], got {wanted}")
    # A record and its label enter every formula as one product.
    signed = X * signs.astype(X.dtype)[:, None]
    lengths = rng.gamma(dimension, noise_scale, size=(wanted[-1], n_runs)) if noise_scale > 0 else None
    weights = np.zeros((n_runs, dimension), dtype=X.dtype)
    total, reported = np.zeros_like(weights), []
    for step in range(wanted[-1]):
        rows = signed[orders[:, step * batch_size : (step + 1) * batch_size]]
        active = (np.matmul(rows, weights[:, :, None]) < 1).astype(X.dtype)
        sums = np.matmul(active.transpose(0, 2, 1), rows)[:, 0]
        if lengths is not None:
            noise = rng.standard_normal(weights.shape, dtype=X.dtype.type)
            noise *= (lengths[step] / np.sqrt(np.einsum("ij,ij->i", noise, noise)))[:, None].astype(X.dtype)
            sums += noise
        sums *= step_size / batch_size
        if regularization:
            weights *= 1 - step_size * regularization
        weights += sums
        norms = np.sqrt(np.einsum("ij,ij->i", weights, weights))
        if (norms > radius).any():
            weights *= np.minimum(1, radius / np.maximum(norms, radius))[:, None].astype(X.dtype)
        total += weights
        if step + 1 in wanted:
            reported.append(total / (step + 1))
    return np.stack(reported)
