import math

import numpy as np
import pytest
from scipy.optimize import minimize

from learner.papers.chaudhuri2008_methods import (
    draw_points,
    gamma_noise,
    objective_2008_epsilon,
    perturbed_problem,
    solve_tilted,
)


def test_solutions_are_scipys() -> None:
    rng = np.random.default_rng(1)
    rows, labels = draw_points("unseparable", 300, rng)
    signed = rows * labels[:, None]
    ridges = np.array([0.01, 0.1, 0.01])
    tilts = np.stack([np.zeros(10), 0.3 * rng.standard_normal(10), 5 * rng.standard_normal(10)])
    solved = solve_tilted(signed, ridges, tilts)
    for weights, ridge, tilt in zip(solved, ridges, tilts, strict=True):

        def value(w: np.ndarray, ridge: float = ridge, tilt: np.ndarray = tilt) -> float:
            return float(np.logaddexp(0, -(signed @ w)).mean() + ridge / 2 * w @ w + tilt @ w)

        found = minimize(value, weights, method="BFGS", options={"gtol": 1e-9})
        assert value(weights) <= found.fun + 1e-9
        assert np.linalg.norm(weights - found.x) <= 1e-3 * max(1.0, float(np.linalg.norm(weights)))


def test_noise_has_gamma_length() -> None:
    lengths = np.linalg.norm(gamma_noise(0.5, (20_000, 4), np.random.default_rng(2)), axis=1)
    assert lengths.mean() == pytest.approx(2.0, abs=5 / math.sqrt(20_000))
    assert lengths.var() == pytest.approx(1.0, abs=0.1)


def test_points_keep_the_margin_and_labels_are_flipped_near_the_plane_only() -> None:
    rows, labels = draw_points("separable", 2_000, np.random.default_rng(3))
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1.0)
    normal = np.linalg.lstsq(rows, labels, rcond=None)[0]
    assert ((rows @ normal) * labels > 0).mean() > 0.98
    rows, labels = draw_points("unseparable", 20_000, np.random.default_rng(3))
    normal = np.linalg.lstsq(rows, labels, rcond=None)[0]
    wrong = (rows @ normal) * labels < 0
    distances = np.abs(rows @ normal) / np.linalg.norm(normal)
    assert not wrong[distances > 0.15].any()
    assert wrong[distances < 0.08].mean() == pytest.approx(0.2, abs=0.03)


def test_the_correction_leaves_less_for_the_tilt_and_prices_the_original() -> None:
    epsilon, ridge, n = 0.02, 0.01, 14_000
    _, published, _ = perturbed_problem("objective_2008", epsilon, ridge, n)
    _, corrected, _ = perturbed_problem("objective_2011", epsilon, ridge, n)
    assert published == 100
    assert corrected == pytest.approx(2 / (epsilon - 2 * math.log1p(0.25 / 140)), rel=1e-9)
    assert objective_2008_epsilon(epsilon, ridge, n) == pytest.approx(0.02 + 2 * math.log1p(0.25 / 140), rel=1e-12)
    assert perturbed_problem("sensitivity", epsilon, ridge, n)[2] == pytest.approx(2 / (n * ridge * epsilon))
    assert perturbed_problem("plain", 0.0, ridge, n) == (ridge, 0.0, 0.0)
    with pytest.raises(ValueError, match="unknown"):
        perturbed_problem("else", 1.0, 1.0, 1)
