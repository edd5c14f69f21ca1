"""Chaudhuri and Monteleoni 2008: private logistic regression by noise on the solution and on the objective."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from learner.estimators.logistic import PrivateLogisticRegression
from privacy.accounting.training import curvature_loss, erm_sensitivity, objective_perturbation
from privacy.arrays import Array

DIMENSION = 10
FOLDS = 5
CURVATURE = 0.25
SETS = ("separable", "unseparable")
SET_TITLES = {"separable": "uniform, margin .03", "unseparable": "noise .2 within margin .1"}
TITLES = {
    "sensitivity": "sensitivity method",
    "objective_2008": "new method, 2008 (unsound)",
    "objective_2011": "its 2011 correction",
    "ours": "ours",
    "amp": "AMP, delta 1/n^2",
    "plain": "plain logistic regression",
}
# Mean and standard deviation over five folds, as printed.
PUBLISHED = {
    "separable": {"sensitivity": (0.2962, 0.0617), "objective_2008": (0.1426, 0.1284), "plain": (0.0, 0.0016)},
    "unseparable": {"sensitivity": (0.3257, 0.0536), "objective_2008": (0.1903, 0.1105), "plain": (0.0530, 0.1105)},
}


def draw_points(name: str, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return rows on the unit sphere, shape (n, 10), and labels -1 or +1 by a random plane through its centre."""
    normal = gamma_noise(1.0, (1, DIMENSION), rng)[0]
    normal /= np.linalg.norm(normal)
    kept: list[Array] = []
    while sum(map(len, kept)) < n:
        rows = rng.standard_normal((2 * n, DIMENSION))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        kept.append(rows[np.abs(rows @ normal) >= 0.03] if name == "separable" else rows)
    rows = np.concatenate(kept)[:n]
    distances = rows @ normal
    labels = np.where(distances > 0, 1.0, -1.0)
    if name == "unseparable":
        labels[(np.abs(distances) < 0.1) & (rng.random(n) < 0.2)] *= -1
    return rows, labels


def objective_2008_epsilon(epsilon: float, regularization: float, n: int) -> float:
    r"""Return what the 2008 algorithm costs at least by its corrected proof: its epsilon plus the change of variables.

    The published 2011 bound :math:`\varepsilon + 2\ln(1 + c/(n\lambda))`.
    """
    return epsilon + 2 * curvature_loss(CURVATURE, 1.0, n * regularization)


def perturbed_problem(method: str, epsilon: float, regularization: float, n: int) -> tuple[float, float, float]:
    """Return ridge (mean form), scale of the tilt (sum form) and scale of the noise on the solution.

    The tilt of `amp` and its output noise are Gaussian with these standard deviations, all others Gamma-norm.
    """
    if method == "plain":
        return regularization, 0.0, 0.0
    if method == "sensitivity":
        return regularization, 0.0, erm_sensitivity(n, regularization) / epsilon
    if method == "objective_2008":
        return regularization, 2 / epsilon, 0.0
    if method == "objective_2011":
        left, extra = objective_perturbation(epsilon, n, regularization)
        return regularization + extra, 2 / left, 0.0
    if method != "amp":
        raise ValueError(f"unknown method {method}")
    # Iyengar et al. 2019, Algorithm 1, with nine tenths of both budgets for the tilt and nine tenths of those for
    # its density; the tolerance of the solver is 1 / n^2.
    tilt_epsilon, delta = 0.9 * epsilon, n**-2.0
    density_epsilon = 0.9 * tilt_epsilon
    ridge = max(regularization, CURVATURE / (tilt_epsilon - density_epsilon) / n)
    tilt = 2 * (1 + math.sqrt(2 * math.log(1 / (0.9 * delta)))) / density_epsilon
    output = n**-2.0 / ridge * (1 + math.sqrt(2 * math.log(1 / (0.1 * delta)))) / (0.1 * epsilon)
    return ridge, tilt, output


def fold_errors(
    train: tuple[Array, Array],
    test: tuple[Array, Array],
    cells: Sequence[tuple[str, float, float]],
    draws: int,
    rng: np.random.Generator,
) -> list[float]:
    """Return the test error of each (method, epsilon, regularization), averaged over `draws` draws of its noise."""
    rows, labels = train
    n = len(rows)
    ridges, tilts, noises, owners = [], [], [], []
    for place, (method, epsilon, regularization) in enumerate(cells):
        ridge, tilt, output = perturbed_problem(method, epsilon, regularization, n)
        shape = (1 if method == "plain" else draws, DIMENSION)
        ridges += [ridge] * shape[0]
        owners += [place] * shape[0]
        tilts.append(_noise(method, tilt, shape, rng) / n)
        noises.append(_noise(method, output, shape, rng))
    weights = solve_tilted(rows * labels[:, None], np.array(ridges), np.concatenate(tilts)) + np.concatenate(noises)
    wrong = ((test[0] @ weights.T) * test[1][:, None] <= 0).mean(axis=0)
    counts = np.bincount(owners)
    errors: list[float] = (np.bincount(owners, weights=wrong) / counts).tolist()
    return errors


def _noise(method: str, scale: float, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    if scale == 0:
        return np.zeros(shape)
    return rng.normal(0.0, scale, shape) if method == "amp" else gamma_noise(scale, shape, rng)


def our_errors(
    train: tuple[Array, Array], test: tuple[Array, Array], epsilons: Sequence[float], regularization: float, seed: int
) -> list[float]:
    """Return the test error of the project's own estimator, for replaced records as in the paper."""
    rows, labels = train
    errors = []
    for place, epsilon in enumerate(epsilons):
        model = PrivateLogisticRegression(
            epsilon,
            len(rows) * regularization,
            classes=[-1.0, 1.0],
            fit_intercept=False,
            adjacency="replace",
            random_state=np.random.default_rng([seed, place]),
        ).fit(rows, labels)
        errors.append(float((model.predict(test[0]) != test[1]).mean()))
    return errors


MOST_STEPS = 200


def gamma_noise(scale: float, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """Return vectors, shape (n, d), of uniform direction and Gamma(d, `scale`) length."""
    draws = rng.standard_normal(shape)
    lengths = rng.gamma(shape[1], scale, size=shape[0])
    noise: Array = draws * (lengths / np.linalg.norm(draws, axis=1))[:, None]
    return noise


def solve_tilted(signed: Array, ridges: Array, tilts: Array, *, tolerance: float = 1e-9) -> Array:
    r"""Minimise :math:`\frac1n\sum_i \ln(1+e^{-\langle s_i, w\rangle}) + \frac{\lambda}{2}\|w\|^2 + b \cdot w`.

    Newton steps for all problems side by side, damped so that each descends.

    References
    ----------
    .. [1] Sun, Tran-Dinh, "Generalized self-concordant functions: a recipe for Newton-type methods", 2019.
    """
    n, dimension = signed.shape
    upper = np.triu_indices(dimension)
    # All second-order terms of all problems are one product with these.
    products = signed[:, upper[0]] * signed[:, upper[1]]
    # A tilt beyond the longest gradient of the losses decides where the minimiser lies, within 1 / lambda.
    heavy = np.linalg.norm(tilts, axis=1) > 1
    weights = np.where(heavy[:, None], -tilts / ridges[:, None], 0.0)
    left = np.arange(len(tilts))
    for _ in range(MOST_STEPS):
        slopes = expit(-(signed @ weights[left].T))
        gradients = -(slopes.T @ signed) / n + ridges[left, None] * weights[left] + tilts[left]
        unsolved = np.linalg.norm(gradients, axis=1) > tolerance
        if not unsolved.any():
            return weights
        left, gradients, slopes = left[unsolved], gradients[unsolved], slopes[:, unsolved]
        packed = (slopes * (1 - slopes)).T @ products / n
        hessians = np.zeros((len(left), dimension, dimension))
        hessians[:, upper[0], upper[1]] = hessians[:, upper[1], upper[0]] = packed
        hessians[:, range(dimension), range(dimension)] += ridges[left, None]
        steps = np.linalg.solve(hessians, gradients[:, :, None])[:, :, 0]
        lengths = np.linalg.norm(steps, axis=1)
        weights[left] -= steps * (np.log1p(lengths) / np.maximum(lengths, 1e-300))[:, None]
    raise ArithmeticError(f"{len(left)} logistic regressions are not solved after {MOST_STEPS} steps")
