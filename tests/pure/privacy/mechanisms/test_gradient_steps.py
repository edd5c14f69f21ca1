import numpy as np
import pytest

from privacy.accounting.steps import CenteredStepsEvent, GradientStepsEvent
from privacy.mechanisms.gradient_steps import NoisySteps
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom

QUIET = 1e-6


def event_of(**changes):
    values = {
        "steps": 3,
        "dimension": 4,
        "n_classes": 3,
        "norm_bound": 1.0,
        "residual_bound": 0.5,
        "sigma": QUIET,
        "count_sigma": 1.0,
    }
    kind = CenteredStepsEvent if "center_sigma" in changes else GradientStepsEvent
    return kind(**(values | changes))


def unit_rows(rng, count, d):
    rows = rng.normal(size=(count, d))
    rows[::3] = np.eye(d)[rng.integers(d, size=len(rows[::3]))]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True) * (1 - 1e-12)


def test_empirical_sensitivity():
    """2,000 rows with residuals of any length: none moves a step by more than is charged, and some nearly reach it."""
    rng, event = np.random.default_rng(20_251_204), event_of()
    rows = unit_rows(rng, 2_000, 4)
    residuals = rng.normal(size=(2_000, 3)) * rng.choice([1e-3, 0.2, 1.0, 50.0], size=(2_000, 1))
    moved = [
        np.linalg.norm(NoisySteps(rows[[place]], event, rng=SimulationRandom(place)).release(residuals[[place]]))
        for place in range(2_000)
    ]
    bound = event.norm_bound * event.residual_bound
    assert max(moved) <= bound + 20 * QUIET
    assert max(moved) >= 0.99 * bound


def test_no_row_moves_the_sum_by_more_than_is_charged():
    rng, event = np.random.default_rng(20_251_206), event_of(center_sigma=QUIET)
    rows = unit_rows(rng, 2_000, 4)
    moved = [
        np.linalg.norm(NoisySteps(rows[[place]], event, rng=SimulationRandom(place)).row_sum) for place in range(2_000)
    ]
    assert 0.99 * event.norm_bound <= max(moved) <= event.norm_bound + 20 * QUIET
    everybody, most = (NoisySteps(part, event, rng=SimulationRandom(1)).row_sum for part in (rows, rows[:-1]))
    last = NoisySteps(rows[-1:], event, rng=SimulationRandom(1)).row_sum
    assert np.abs(everybody - most - last).max() < 30 * QUIET
    assert np.abs(everybody - rows.sum(axis=0)).max() < 2_000 / 2**13
    assert NoisySteps(rows, event_of(), rng=SimulationRandom(1)).row_sum is None


def test_other_rows_of_the_same_records_answer_the_steps():
    rng = np.random.default_rng(5)
    rows, others = unit_rows(rng, 30, 4), unit_rows(rng, 30, 4)
    noisy = NoisySteps(rows, event_of(center_sigma=1.0), rng=SimulationRandom(1))
    noisy.replace_rows(others)
    residuals = rng.normal(size=(30, 3)) * 0.1
    assert np.abs(noisy.release(residuals) - residuals.T @ others).max() < 0.02
    with pytest.raises(ValueError, match="30 rows as before"):
        noisy.replace_rows(others[:-1])
    with pytest.raises(ValueError, match="clip them first"):
        noisy.replace_rows(others * 1.1)
    with pytest.raises(ValueError, match="4 columns"):
        noisy.replace_rows(others[:, :3])


def test_a_record_beside_others_moves_by_its_own_part_alone():
    """Scores do not depend on the rows around, so neither do rounded residuals: the sums differ by one part exactly."""
    rng, event = np.random.default_rng(3), event_of(dimension=40, n_classes=7)
    rows, weights = unit_rows(rng, 501, 40), rng.normal(size=(7, 40)) * 20

    def total(part):
        noisy = NoisySteps(part, event, rng=SimulationRandom(1))
        scores = noisy.scores(weights)
        return scores, noisy.release(np.tanh(scores))

    (all_scores, everybody), (most_scores, most), (one_score, one) = (
        total(part) for part in (rows, rows[:-1], rows[-1:])
    )
    assert (all_scores[:-1] == most_scores).all()
    assert (all_scores[-1:] == one_score).all()
    assert np.abs(everybody - most - one).max() < 30 * QUIET


def test_scores_are_products():
    rng = np.random.default_rng(4)
    rows, weights = unit_rows(rng, 50, 4), rng.normal(size=(3, 4))
    noisy = NoisySteps(rows, event_of(), rng=SimulationRandom(1))
    assert np.abs(noisy.scores(weights) - rows @ weights.T).max() < 2e-3


def test_no_step_beyond_those_paid_for():
    noisy = NoisySteps(unit_rows(np.random.default_rng(1), 5, 4), event_of(steps=2), rng=SimulationRandom(1))
    for _step in range(2):
        noisy.release(np.zeros((5, 3)))
    with pytest.raises(ValueError, match="only 2 steps"):
        noisy.release(np.zeros((5, 3)))


@pytest.mark.parametrize("rows", [np.full((1, 4), 0.6), np.full((1, 4), np.nan), np.zeros((1, 5))])
def test_rows_that_were_not_declared_are_refused(rows):
    with pytest.raises(ValueError):
        NoisySteps(rows, event_of(), rng=SimulationRandom(1))


def test_residuals_that_are_no_numbers_are_refused():
    noisy = NoisySteps(np.zeros((1, 4)), event_of(), rng=SimulationRandom(1))
    with pytest.raises(ValueError):
        noisy.release(np.full((1, 3), np.nan))


def test_secure_noise_is_new_each_time():
    rows, event = np.zeros((0, 4)), event_of(sigma=2.0)
    first, second = (NoisySteps(rows, event, rng=SecureRandom()).release(np.zeros((0, 3))) for _time in range(2))
    assert (first != second).all()
