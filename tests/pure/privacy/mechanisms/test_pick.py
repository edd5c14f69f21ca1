import numpy as np
import pytest

from dpal.recompute.pick import place_of
from privacy.accounting.events import ObjectivePerturbationEvent, PickedFitEvent, SumsEvent
from privacy.mechanisms.pick import bar_of, release_counts, right_answers
from privacy.mechanisms.randomness import SimulationRandom

COUNTED = PickedFitEvent(SumsEvent(4, 3, 1.0, 0.0, 2.5), 5, 10.0)
DRAWN = PickedFitEvent(ObjectivePerturbationEvent(0.9, 10.0, 0.0, 5, 1e-6, 0.01), 3, 0.5, "exponential")


def pick(right, event, rng):
    return place_of(release_counts(right, event, rng=rng), bar_of(event))


def pool(rng, n, d=5, k=4):
    rows = rng.normal(size=(n, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) * (1 + 1e-9)
    models = [(rng.normal(size=(k, d)) * 10.0**power, rng.normal(size=k)) for power in range(-3, 4)]
    return rows, rng.integers(0, k, n), models


def test_counts_are_those_of_the_models():
    rng = np.random.default_rng(1)
    rows, places, models = pool(rng, 500)
    found = right_answers(rows, places, models, norm_bound=1.0)
    plain = [int(((rows @ coef.T + intercept).argmax(axis=1) == places).sum()) for coef, intercept in models]
    assert np.abs(found - plain).max() <= 1
    coef, intercept = rng.normal(size=(1, 5)), np.array([0.1])
    two = right_answers(rows, places % 2, [(coef, intercept)], norm_bound=1.0)
    assert two[0] == pytest.approx(int((((rows @ coef[0] + intercept) > 0) == places % 2).sum()), abs=1)


def test_a_record_moves_each_count_by_itself_alone():
    """Whatever lies around it: else the difference of two counts could move by more than one."""
    rng = np.random.default_rng(2)
    for _trial in range(50):
        rows, places, models = pool(rng, 40)
        whole = right_answers(rows, places, models, norm_bound=1.0)
        alone = [right_answers(rows[[row]], places[[row]], models, norm_bound=1.0) for row in range(40)]
        np.testing.assert_array_equal(whole, np.sum(alone, axis=0))
        assert set(np.unique(alone)) <= {0, 1}


def test_a_longer_row_is_refused():
    with pytest.raises(ValueError, match="clip them first"):
        right_answers(np.full((1, 2), 1.0), np.zeros(1, dtype=np.int64), [(np.eye(2), np.zeros(2))], norm_bound=1.0)


def test_no_more_candidates_than_are_paid_for():
    for event in (COUNTED, DRAWN):
        with pytest.raises(ValueError, match="candidates are paid for"):
            pick(np.zeros(6, dtype=np.int64), event, SimulationRandom(1))


@pytest.mark.parametrize(("ahead", "least"), [(0, 0.88), (100, 0.0)])
def test_the_first_wins_unless_another_is_well_ahead(ahead, least):
    """Four differences of noise alone exceed two deviations in 9 % of cases; false alarm below 1e-6 over 2,000."""
    right = np.array([400, 400, 400 + ahead, 400, 400])
    rng = SimulationRandom(3)
    picks = np.bincount([pick(right, COUNTED, rng) for _ in range(2_000)], minlength=5) / 2_000
    assert picks[0] >= least
    assert picks[0] <= 0.94
    if ahead:
        assert picks[2] > 0.99


def test_weights_are_drawn_as_they_are_charged():
    """5 sigma; the twin with the exponent of half the charge must be told apart."""
    right, rng, draws = np.array([3, 9, 11]), SimulationRandom(4), 20_000
    picks = np.bincount([pick(right, DRAWN, rng) for _ in range(draws)], minlength=3) / draws
    # The first is put ahead by odds of twenty to one: 5.99 for an exponent of one half.
    counts = right + np.array([6, 0, 0])

    def masses(scale):
        weights = np.exp(scale * (counts - counts.max()))
        return weights / weights.sum()

    for scale, accepted in ((0.5, True), (0.25, False)):
        expected = masses(scale)
        off = np.abs(picks - expected) / np.sqrt(expected * (1 - expected) / draws)
        assert (off.max() < 5) == accepted
