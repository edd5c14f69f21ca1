import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit

from privacy.accounting import training
from privacy.accounting.cost import NoProof

margins = st.floats(-1, 1)
points = st.lists(st.tuples(margins, st.sampled_from([-1, 1])), min_size=1, max_size=6)


def gradient(records, w):
    return sum(-y * x * expit(-y * x * w) for x, y in records)


def hessian(records, w):
    return sum(x * x * expit(x * w) * expit(-x * w) for x, y in records)


def minimiser(records, total, tilt=0.0):
    reach = (len(records) + 1 + abs(tilt)) / total
    return brentq(lambda w: total * w + gradient(records, w) + tilt, -reach, reach, xtol=1e-14)


@given(records=points, other=st.tuples(margins, st.sampled_from([-1, 1])), total=st.floats(0.05, 20))
def test_no_neighbour_moves_the_minimiser_further_than_the_sensitivity(records, other, total):
    n = len(records)
    whole = minimiser(records, total)
    replaced = minimiser([*records[:-1], other], total)
    nulled = minimiser([*records[:-1], (0.0, 1)], total)
    slack = 1e-12
    assert abs(whole - replaced) <= training.erm_sensitivity(n, total / n) * (1 + 1e-9) + slack
    assert abs(whole - nulled) <= training.erm_sensitivity(n, total / n, adjacency="null") * (1 + 1e-9) + slack
    for adjacency, moved in (("add_remove", nulled), ("null", nulled), ("replace", replaced)):
        bound = training.erm_sensitivity(0, total, form="sum", adjacency=adjacency)
        assert abs(whole - moved) <= bound * (1 + 1e-9) + slack


def test_sensitivities_of_every_form():
    assert training.erm_sensitivity(100, 0.1) == pytest.approx(0.2)
    assert training.erm_sensitivity(100, 0.1, adjacency="null") == pytest.approx(0.1)
    assert training.erm_sensitivity(100, 0.1, 3.0, gradient_tolerance=0.01) == pytest.approx(0.6 + 0.2)
    assert training.erm_sensitivity(1, 10.0, form="sum") == pytest.approx(0.2)
    with pytest.raises(NoProof, match="n must be public; use the sum form"):
        training.erm_sensitivity(100, 0.1, adjacency="add_remove")


def test_stopping_early_moves_two_certified_points_by_the_slack():
    records, total, g = [(1.0, 1), (0.5, -1)], 0.7, 0.01
    slope = lambda w: total * w + gradient(records, w)  # noqa: E731
    ends = [brentq(lambda w, level=level: slope(w) - level, -10, 10) for level in (-g, g)]
    assert abs(ends[1] - ends[0]) <= training.solver_slack(g, total)
    assert abs(ends[1] - ends[0]) > 0.5 * training.solver_slack(g, total)


def test_grid_slack_is_the_farthest_two_roundings_can_pull_apart():
    h, d = 0.25, 9
    low, high = np.full(d, 0.5 * h - 1e-12), np.full(d, 0.5 * h + 1e-12)
    moved = np.round(high / h) * h - np.round(low / h) * h
    assert np.linalg.norm(moved) == pytest.approx(training.grid_slack(h, d))
    assert np.abs(moved).sum() == pytest.approx(training.grid_slack(h, d, "l1"))


def log_density(records, w, *, total, scale):
    tilt = -(total * w + gradient(records, w))
    return -abs(tilt) / scale - math.log(2 * scale) + math.log(total + hessian(records, w))


@given(
    records=points,
    other=st.tuples(margins, st.sampled_from([-1, 1])),
    w=st.floats(-20, 20),
    epsilon=st.floats(0.1, 5),
    total=st.floats(0.05, 20),
    jacobian=st.sampled_from(["published", "rank_one"]),
)
def test_objective_perturbation_density_ratio_on_the_line(records, other, w, epsilon, total, jacobian):
    """On the line the Gamma-norm tilt is a Laplace variable and the density is exact, Jacobian included."""
    prime, extra = training.objective_perturbation(epsilon, 1, total, form="sum", jacobian=jacobian)
    for adjacency, neighbour in (("replace", [*records[:-1], other]), ("null", records[:-1])):
        scale = training.gamma_norm_scale(prime, 1.0, adjacency)
        here, there = (log_density(r, w, total=total + extra, scale=scale) for r in (records, neighbour))
        assert abs(here - there) <= epsilon + 1e-9


@pytest.mark.parametrize(("epsilon", "n", "regularization"), [(1.0, 100, 0.1), (0.5, 1000, 0.01), (2.0, 50, 0.02)])
def test_published_noise_parameter(epsilon, n, regularization):
    prime, extra = training.objective_perturbation(epsilon, n, regularization)
    ratio = 0.25 / (n * regularization)
    assert prime == pytest.approx(epsilon - math.log(1 + 2 * ratio + ratio**2), rel=1e-9)
    assert extra == 0.0


def test_published_extra_regularisation():
    epsilon, n, regularization = 0.1, 10, 0.01
    prime, extra = training.objective_perturbation(epsilon, n, regularization)
    assert prime == pytest.approx(epsilon / 2, rel=1e-9)
    assert extra == pytest.approx(0.25 / (n * math.expm1(epsilon / 4)) - regularization, rel=1e-9)


@given(
    epsilon=st.floats(0.01, 10),
    n=st.integers(1, 10_000),
    regularization=st.floats(1e-4, 10),
    curvature=st.floats(0.01, 5),
    norm_bound=st.floats(0.1, 5),
    jacobian=st.sampled_from(["published", "rank_one"]),
)
def test_noise_parameter_never_overspends(epsilon, n, regularization, curvature, norm_bound, jacobian):
    prime, extra = training.objective_perturbation(
        epsilon, n, regularization, curvature, norm_bound=norm_bound, jacobian=jacobian
    )
    terms = 2 if jacobian == "published" else 1
    spent = prime + terms * training.curvature_loss(curvature, norm_bound, n * (regularization + extra))
    assert spent <= epsilon
    assert spent >= epsilon * (1 - 1e-9)
    assert extra >= 0


def test_rank_one_change_of_variables_leaves_more_for_the_tilt():
    published, _ = training.objective_perturbation(1.0, 100, 0.1)
    rank_one, _ = training.objective_perturbation(1.0, 100, 0.1, jacobian="rank_one")
    assert rank_one > published


@given(matrix_seed=st.integers(0, 2**32 - 1), total=st.floats(0.05, 5))
def test_one_record_changes_the_determinant_by_at_most_the_rank_one_factor(matrix_seed, total):
    rng = np.random.default_rng(matrix_seed)
    d, n = 4, 6
    X = rng.normal(size=(n, d))
    X /= np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
    weights = rng.uniform(0, 0.25, size=n)
    common = (X[1:] * weights[1:, None]).T @ X[1:] + total * np.eye(d)
    with_record = common + weights[0] * np.outer(X[0], X[0])
    other = rng.normal(size=d)
    replaced = common + 0.25 * np.outer(other, other) / max(1, other @ other)
    factor = training.curvature_loss(0.25, 1.0, total)
    logs = [np.linalg.slogdet(m)[1] for m in (common, with_record, replaced)]
    assert 0 <= logs[1] - logs[0] <= factor + 1e-12
    assert abs(logs[1] - logs[2]) <= factor + 1e-12


@pytest.mark.parametrize(
    ("function", "arguments", "seen"),
    [
        (training.erm_sensitivity, (0, 0.1), "got 0"),
        (training.erm_sensitivity, (10, 0.0), "got 0.0"),
        (training.objective_perturbation, (0.0, 10, 0.1), "got 0.0"),
        (training.objective_perturbation, (1.0, 10, 0.1, -0.25), "got -0.25"),
        (training.solver_slack, (-1e-9, 1.0), "got -1e-09"),
        (training.grid_slack, (0.1, 0), "got 0"),
        (training.records_moved, ("remove",), "got 'remove'"),
    ],
)
def test_refusals_name_the_value(function, arguments, seen):
    with pytest.raises(ValueError, match=seen):
        function(*arguments)
