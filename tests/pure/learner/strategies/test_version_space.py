"""The version space: arcs, witnesses and non-negative combinations agree with linear programs."""

import numpy as np
import pytest
from scipy.optimize import linprog

from learner.linear_model import LinearModel
from learner.strategies.version_space import VersionSpace, VersionSpaceScreen, cone_around

ROWS = np.arange(300)


def undecided_by_programs(evidence, point):
    """Ask two linear programs whether hypotheses strictly on either side of the point exist."""
    box = [(-1, 1)] * len(point)
    ends = [
        linprog(sign * point, A_ub=-evidence, b_ub=np.zeros(len(evidence)), bounds=box, method="highs").fun
        for sign in (1, -1)
    ]
    return max(ends) < -1e-9


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dimension", [2, 3, 6])
@pytest.mark.parametrize("k", [1, 4, 15])
def test_exact_decisions_are_those_of_linear_programs(dimension, k):
    rng = np.random.default_rng(dimension * 100 + k)
    truth = rng.normal(size=dimension)
    public = rng.normal(size=(k, dimension))
    evidence = public * np.sign(public @ truth)[:, None]
    points = rng.normal(size=(60, dimension))
    # Combinations of the evidence are decided, and so are their negatives.
    points[:10] = rng.uniform(size=(10, k)) @ evidence
    points[10:20] = -rng.uniform(size=(10, k)) @ evidence
    space = VersionSpace(evidence)
    expected = [undecided_by_programs(evidence, point) for point in points]
    assert space.undecided(points, exact=True).tolist() == expected
    assert not any(expected[:20])
    assert k > 10 or any(expected)


def test_witnesses_never_dispute_what_is_decided_and_miss_little():
    rng = np.random.default_rng(3)
    public = rng.normal(size=(8, 5))
    evidence = public * np.sign(public[:, :1])
    space = VersionSpace(evidence)
    assert (space.witnesses @ space.evidence.T > -1e-12).all()
    points = rng.normal(size=(500, 5))
    sampled, exact = (space.undecided(points, exact=flag) for flag in (False, True))
    assert not (sampled & ~exact).any()
    assert sampled.sum() > 0.9 * exact.sum()
    assert not exact.all()


def test_contradictory_evidence_leaves_nothing_undecided():
    space = VersionSpace([[1.0, 0.0], [-1.0, 0.0]])
    assert space.center is None
    assert not space.undecided(np.eye(2), exact=True).any()


def test_no_evidence_leaves_everything_undecided_but_the_origin():
    space = VersionSpace(np.empty((0, 3)))
    assert space.undecided(np.array([[0.0, 1, 0], [0, 0, 0]]), exact=True).tolist() == [True, False]


@pytest.mark.parametrize("dimension", [2, 3, 7])
def test_cone_holds_the_directions_within_the_angle_and_not_far_more(dimension):
    rng = np.random.default_rng(dimension)
    weights = rng.normal(size=dimension)
    unit = weights / np.linalg.norm(weights)
    evidence = cone_around(weights, half_angle=0.3)
    for _ in range(200):
        beside = rng.normal(size=dimension)
        beside -= (beside @ unit) * unit
        beside /= np.linalg.norm(beside)
        assert (evidence @ (np.cos(0.299) * unit + np.sin(0.299) * beside) >= 0).all()
        wide = np.arctan(np.tan(0.3) * np.sqrt(dimension - 1)) + 1e-6
        assert not (evidence @ (np.cos(wide) * unit + np.sin(wide) * beside) >= 0).all()


def test_in_the_plane_the_screen_is_the_angle_to_the_separator():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(300, 2)).astype(np.float32)
    weights = np.array([1.0, -2.0])
    model = LinearModel(weights[None], np.zeros(1), ("no", "yes"))
    sine = np.abs(X @ weights) / np.linalg.norm(X, axis=1) / np.linalg.norm(weights)
    informative = VersionSpaceScreen(half_angle=0.4).informative(X, ROWS, model)
    assert informative.tolist() == (sine < np.sin(0.4)).tolist()
    assert 0 < informative.sum() < 300


def test_public_evidence_narrows_what_is_informative():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    model = LinearModel(np.array([[1.0, 0.5, 0.0]]), np.zeros(1), ("no", "yes"))
    public = rng.normal(size=(40, 3))
    evidence = public * np.sign(public @ np.array([1.0, 0.6, 0.1]))[:, None]
    alone = VersionSpaceScreen(half_angle=0.5).informative(X, ROWS, model)
    helped = VersionSpaceScreen(half_angle=0.5, evidence=evidence).informative(X, ROWS, model)
    assert not (helped & ~alone).any()
    assert helped.sum() < alone.sum()


def test_more_angle_more_questions():
    rng = np.random.default_rng(10)
    X = rng.normal(size=(300, 5)).astype(np.float32)
    model = LinearModel(rng.normal(size=(1, 5)), np.array([0.1]), ("no", "yes"))
    counts = [VersionSpaceScreen(half_angle=a).informative(X, ROWS, model).sum() for a in (0.02, 0.1, 0.4)]
    assert counts == sorted(set(counts))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: VersionSpace(np.ones((2, 21))), "1 to 20 columns"),
        (lambda: VersionSpace([[np.nan, 1.0]]), "finite"),
        (lambda: VersionSpace([[1.0]], witnesses=1), "witnesses"),
        (lambda: cone_around([1.0, 0.0], half_angle=2.0), "half_angle"),
        (lambda: VersionSpaceScreen(half_angle=0.0), "half_angle"),
        (lambda: VersionSpaceScreen(0.1, 0.5), "low must be"),
        (lambda: VersionSpaceScreen(method="guess"), "method must be"),
    ],
)
def test_parameters_are_checked(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_evidence_must_fit_the_model():
    X = np.ones((4, 3), dtype=np.float32)
    with_intercept = LinearModel(np.ones((1, 3)), np.ones(1), ("no", "yes"))
    with pytest.raises(ValueError, match="needs a last column"):
        VersionSpaceScreen(evidence=np.ones((2, 3))).informative(X, np.arange(4), with_intercept)
    with pytest.raises(ValueError, match="must have 4 columns"):
        VersionSpaceScreen(evidence=np.ones((2, 2))).informative(X, np.arange(4), with_intercept)
    wide = LinearModel(np.ones((1, 21)), np.zeros(1), ("no", "yes"))
    with pytest.raises(ValueError, match="1 to 20 columns"):
        VersionSpaceScreen().informative(np.ones((4, 21), dtype=np.float32), np.arange(4), wide)
