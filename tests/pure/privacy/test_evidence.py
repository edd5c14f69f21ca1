import math

import numpy as np
import pytest
from scipy import stats

from privacy import evidence
from privacy.accounting.composition import gaussian_epsilon
from privacy.evidence import audit, epsilon_lower_bound, gaussian_audit
from privacy.mechanisms.randomness import SimulationRandom


def randomised_response(keep):
    def batch(bit, trials, rng):
        return np.where(rng.random(trials) < keep, bit, 1 - bit)

    return batch


def test_bound_is_close_to_the_loss_and_names_the_event():
    keep = math.e / (1 + math.e)
    result = audit(randomised_response(keep), 1, 0, trials=200_000, rng=SimulationRandom(0))
    assert 0.95 < result.epsilon_lower_bound <= 1
    assert result.trials == 200_000
    assert result.confidence == 0.95
    assert (result.event, result.more_likely) in {("output <= 0", "neighbour"), ("output > 0", "input")} | {
        ("output == 0", "neighbour"),
        ("output == 1", "input"),
    }


def pure_noise(_, trials, rng):
    return rng.random(trials)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("mechanism", "loss"), [(randomised_response(0.75), math.log(3)), (pure_noise, 0.0)])
def test_bound_exceeds_the_loss_no_oftener_than_its_confidence_says(mechanism, loss):
    """500 audits at 80 % confidence: a true bound is above in more than 148 of them once in 10**7 seeds.

    Were the threshold chosen by the outputs that are counted, pure noise would be above nearly always.
    """
    rng = SimulationRandom(1)
    audits = [epsilon_lower_bound(mechanism, 1, 0, trials=400, confidence=0.8, rng=rng) for _ in range(500)]
    assert sum(bound > loss for bound in audits) <= 148


def gaussian(ratio):
    def batch(shift, trials, rng):
        return rng.generator.normal(ratio * shift, size=trials)

    return batch


def test_the_gaussian_bound_is_close_to_the_ratio_and_names_the_event():
    result = gaussian_audit(gaussian(0.8), 1, 0, trials=200_000, rng=SimulationRandom(6))
    assert 0.74 < result.mu_lower_bound <= 0.8
    assert result.trials == 200_000
    assert result.event.startswith("output ")
    assert result.more_likely in ("input", "neighbour")


@pytest.mark.slow
@pytest.mark.one_in(2)
@pytest.mark.parametrize("ratio", [0.0, 0.5])
def test_the_gaussian_bound_exceeds_the_ratio_no_oftener_than_its_confidence_says(ratio):
    """500 audits at 80 % confidence: a true bound is above in more than 148 of them once in 10**7 seeds."""
    rng = SimulationRandom(7)
    audits = [
        gaussian_audit(gaussian(ratio), 1, 0, trials=400, confidence=0.8, rng=rng).mu_lower_bound for _ in range(500)
    ]
    assert sum(bound > ratio for bound in audits) <= 148


def test_half_the_gaussian_noise_is_found_where_a_bound_on_epsilon_finds_nothing():
    """At delta 1e-6 and 1,500 outputs, twenty of twenty against none; the seed is fixed."""
    rng, delta = SimulationRandom(8), 1e-6
    promised = gaussian_epsilon(2.0, delta)
    options = {"trials": 1500, "confidence": 1 - 1e-6, "rng": rng}
    ratios = [gaussian_audit(gaussian(4.0), 1, 0, **options).mu_lower_bound for _ in range(20)]
    assert min(ratios) > 2
    epsilons = [epsilon_lower_bound(gaussian(4.0), 1, 0, delta=delta, **options) for _ in range(20)]
    assert max(epsilons) < promised


def test_an_event_that_happens_always_or_never_shows_no_gaussian_ratio():
    constant = gaussian_audit(lambda _, trials, rng: np.zeros(trials), 1, 0, trials=40, rng=SimulationRandom(9))
    assert constant.mu_lower_bound == 0
    apart = gaussian_audit(lambda bit, trials, rng: np.full(trials, bit), 1, 0, trials=4000, rng=SimulationRandom(9))
    assert 4 < apart.mu_lower_bound < math.inf


def test_delta_is_subtracted():
    """An output that shows the input once in ten times is (0, 0.1)-private and has no finite epsilon at delta 0."""

    def leaky(bit, trials, rng):
        return np.where(rng.random(trials) < 0.1, bit, 2)

    found = epsilon_lower_bound(leaky, 1, 0, trials=20_000, rng=SimulationRandom(3))
    charged = epsilon_lower_bound(leaky, 1, 0, trials=20_000, delta=0.11, rng=SimulationRandom(3))
    assert found > 4
    assert charged == 0


def test_many_distinct_outputs_are_thinned_without_losing_the_tail(monkeypatch):
    monkeypatch.setattr(evidence, "MOST_THRESHOLDS", 16)

    def laplace(shift, trials, rng):
        return shift + rng.generator.laplace(size=trials)

    bound = epsilon_lower_bound(laplace, 0.0, 1.0, trials=50_000, rng=SimulationRandom(4))
    assert 0.8 < bound <= 1


def test_bounds_are_clopper_and_pearsons():
    for successes, trials in ((0, 50), (1, 50), (25, 50), (50, 50)):
        interval = stats.binomtest(successes, trials).proportion_ci(confidence_level=0.95, method="exact")
        count = np.array([successes])
        low = evidence._bounds(count, np.array([trials]), trials, 0.025, 0.0)[0]
        high = evidence._bounds(np.array([trials]), count, trials, 0.025, 0.0)[0]
        expected = stats.binomtest(trials, trials).proportion_ci(confidence_level=0.95, method="exact").low
        assert low == pytest.approx(math.log(interval.low) if interval.low else -math.inf)
        assert high == pytest.approx(math.log(expected / interval.high))


def test_refusals():
    rng = SimulationRandom(0)
    for options in ({"trials": 3}, {"confidence": 1.0}, {"confidence": 0.0}, {"delta": 1.0}, {"delta": -0.1}):
        with pytest.raises(ValueError, match="must"):
            epsilon_lower_bound(randomised_response(0.5), 0, 1, **{"trials": 10, **options}, rng=rng)
    for wrong in (lambda *_: np.zeros(3), lambda *_: np.full(10, np.nan)):
        with pytest.raises(ValueError, match="must return 10 numbers"):
            epsilon_lower_bound(wrong, 0, 1, trials=10, rng=rng)
