import tracemalloc

import numpy as np
import pytest
from scipy import stats

from learner.features.matrix import open_matrix, write_matrix
from learner.linear_model import LinearModel
from learner.strategies.scoring import boundary_distances, score_blocks
from learner.strategies.top_c import TopC
from learner.strategies.uncertainty import Uncertainty
from privacy.mechanisms.randomness import SimulationRandom

RNG = np.random.default_rng(21)
X = RNG.uniform(-0.4, 0.4, size=(300, 5)).astype(np.float32)


def model_of(n_outputs, dimension=5):
    rng = np.random.default_rng(n_outputs)
    classes = tuple(f"class {number}" for number in range(max(2, n_outputs)))
    return LinearModel(rng.normal(size=(n_outputs, dimension)), rng.normal(size=n_outputs) / 10, classes)


def all_values(model, candidates=None, block_rows=None, features=X):
    candidates = np.arange(len(features)) if candidates is None else candidates
    return np.concatenate(list(score_blocks(features, model, candidates=candidates, block_rows=block_rows)))


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("block_rows", [1, 7, 300, None])
@pytest.mark.parametrize(
    "candidates", [np.arange(300), np.arange(20, 60), np.array([3, 4, 5, 9, 200]), np.arange(0, 300, 3)]
)
def test_blocks_join_to_the_whole_product(n_outputs, block_rows, candidates):
    model = model_of(n_outputs)
    expected = X[candidates].astype(np.float64) @ model.coef.T + model.intercept
    values = all_values(model, candidates, block_rows)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, expected[:, 0] if n_outputs == 1 else expected, atol=1e-6)


def test_binary_distance_is_the_margin_over_the_norm():
    model = model_of(1)
    values = all_values(model)
    expected = np.abs(X.astype(np.float64) @ model.coef[0] + model.intercept[0]) / np.linalg.norm(model.coef)
    np.testing.assert_allclose(boundary_distances(values, model.coef), expected, atol=1e-6)


def test_moving_by_the_distance_reaches_the_boundary():
    """From each record, a step of that length towards the nearest rival class makes a tie, and none is nearer."""
    model = model_of(4)
    distances = boundary_distances(all_values(model), model.coef)
    scores = X.astype(np.float64) @ model.coef.T + model.intercept
    for score, distance in zip(scores, distances, strict=True):
        leader = score.argmax()
        steps = [
            (score[leader] - score[j]) / np.linalg.norm(model.coef[leader] - model.coef[j])
            for j in range(4)
            if j != leader
        ]
        assert distance == pytest.approx(min(steps), abs=1e-5)


def reference_uncertainty(probabilities, measure):
    ranked = np.sort(probabilities, axis=1)
    return {
        "entropy": stats.entropy(probabilities, axis=1),
        "margin": 1 - ranked[:, -1] + ranked[:, -2],
        "least_confidence": 1 - ranked[:, -1],
    }[measure]


@pytest.mark.parametrize("n_outputs", [1, 4])
@pytest.mark.parametrize("measure", ["entropy", "margin", "least_confidence"])
def test_uncertainty_takes_the_least_certain_first(n_outputs, measure):
    model = model_of(n_outputs)
    candidates = np.arange(40, 240)
    picks = Uncertainty(measure).query(X, candidates, model, 25, SimulationRandom(0))
    expected = reference_uncertainty(model.probabilities(all_values(model)), measure)
    order = candidates[np.argsort(-expected[candidates], kind="stable")]
    np.testing.assert_allclose(expected[picks], expected[order[:25]], rtol=1e-9)


def test_measures_differ_on_three_classes():
    model = model_of(3)
    picks = {
        measure: tuple(Uncertainty(measure).query(X, np.arange(300), model, 30, SimulationRandom(0)))
        for measure in ("entropy", "margin", "least_confidence")
    }
    assert len(set(picks.values())) == 3


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("features", [X, X * 1e30, np.full_like(X, np.nan), np.full_like(X, np.inf)])
def test_top_c_scores_stay_in_the_unit_interval(n_outputs, features):
    with np.errstate(all="ignore"):
        blocks = list(TopC().uncertainties(features, np.arange(300), model_of(n_outputs)))
    scores = np.concatenate(blocks)
    assert scores.min() >= 0
    assert scores.max() <= 1


def test_top_c_prefers_the_boundary():
    """With a steep scale all picks lie nearer than the median; seeded, and the twin without scale is refused."""
    model = model_of(1)
    near = boundary_distances(all_values(model), model.coef)
    steep = TopC(2000.0).query(X, np.arange(300), model, 40, SimulationRandom(1))
    flat = TopC(1e-9).query(X, np.arange(300), model, 40, SimulationRandom(1))
    assert near[steep].max() < np.median(near)
    assert near[flat].max() > np.median(near)


@pytest.mark.parametrize("candidates", [np.arange(200_000), np.arange(0, 200_000, 2)])
def test_scoring_a_memory_map_needs_little_memory(tmp_path, candidates):
    block = np.ones((50_000, 128), dtype=np.float32)
    mapped = open_matrix(write_matrix(tmp_path / "x.npy", [block] * 4, dimension=128).path)
    tracemalloc.start()
    n_scored = sum(len(values) for values in score_blocks(mapped, model_of(10, 128), candidates=candidates))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n_scored == len(candidates)
    assert peak < 32 * 2**20
