import numpy as np
import pytest

from learner.estimators.class_shares import SharesPlan, labels_alone, model_alone, noise_variance, with_model
from privacy.accounting.counts import ClassCountsEvent, class_counts_event
from privacy.accounting.screens import inner_epsilon
from privacy.mechanisms.randomness import SimulationRandom
from privacy.mechanisms.shares import compared_cells, count_query, label_cells, predicted_cells

N, K, RATE = 4000, 4, 0.1
SHARES = np.array([0.55, 0.3, 0.12, 0.03])
RUNS = 200


def pool():
    rng = np.random.default_rng(7)
    labels = rng.choice(K, N, p=SHARES)
    # A model that finds class 0 too often.
    predicted = np.where(rng.random(N) < 0.8, labels, rng.choice(K, N, p=[0.7, 0.1, 0.1, 0.1]))
    return labels, predicted, np.bincount(labels, minlength=K + 1) / N


def answer(cells, event, rng):
    return count_query("counts", lambda: cells, event, rng=rng)["counts"]().answer


def runs(epsilon, *, sample_noise=1.0, weight=0.75):
    """Yield estimates by labels alone, by the model alone and by both; `sample_noise` is what the interval is told."""
    labels, predicted, truth = pool()
    plan = SharesPlan(N, RATE, K)
    pool_epsilon, inside = plan.split(epsilon)
    alone = class_counts_event(inner_epsilon(epsilon, RATE), cells=K + 1, counted=1)
    everywhere = class_counts_event(pool_epsilon, cells=K, counted=1)
    both = class_counts_event(inside, cells=3 * (K + 1), counted=2)
    nowhere = np.zeros(N, dtype=np.int64)
    for seed in range(RUNS):
        rng, taken = SimulationRandom(seed), np.random.default_rng(seed).random(N) < RATE
        here = (labels[taken], predicted[taken], nowhere[taken])
        told = answer(label_cells(here[0], here[2], n_classes=K), alone, rng).reshape(1, -1)
        said = answer(predicted_cells(predicted, nowhere, n_classes=K), everywhere, rng).reshape(1, -1)
        compared = answer(compared_cells(*here, n_classes=K), both, rng).reshape(1, 3, -1)
        yield (
            labels_alone(told, rate=RATE, variance=noise_variance(alone)),
            model_alone(said, variance=noise_variance(everywhere)),
            with_model(
                said,
                compared,
                weight=weight,
                rate=RATE,
                pool_variance=noise_variance(everywhere),
                variance=sample_noise * noise_variance(both),
            ),
            truth,
        )


def covered(shares, truth):
    return ((shares.low[0] <= truth) & (truth <= shares.high[0]))[:K]


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_intervals_cover_and_the_correction_is_unbiased(epsilon):
    found = list(runs(epsilon))
    alone, said, both = ([run[place] for run in found] for place in range(3))
    truth = found[0][3]
    assert np.mean([covered(one, truth) for one in alone]) >= 0.93
    assert np.mean([covered(one, truth) for one in both]) >= 0.93
    errors = np.array([one.values[0] - truth for one in both])
    assert (np.abs(errors.mean(axis=0)) < 4 * errors.std(axis=0) / np.sqrt(RUNS) + 1e-3).all()
    # The model alone is wrong whatever is counted, and its interval says nothing about that.
    assert np.mean([covered(one, truth) for one in said]) < 0.7
    if epsilon == 2.0:
        assert np.abs(errors).mean() < 0.8 * np.mean([np.abs(one.values[0] - truth) for one in alone])


@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0])
def test_every_weight_of_the_model_covers(weight):
    assert np.mean([covered(both, truth) for *_, both, truth in runs(1.0, weight=weight)]) >= 0.93


def test_an_interval_that_forgets_the_noise_does_not_cover():
    """The wrong twin: sampling error alone, where noise is the larger part."""
    assert np.mean([covered(both, truth) for *_, both, truth in runs(0.1, sample_noise=0.0)]) < 0.93
    assert np.mean([covered(both, truth) for *_, both, truth in runs(0.1)]) >= 0.93


def test_noise_variance_is_that_of_draws():
    event = ClassCountsEvent(200_000, 1, 3.0)
    drawn = answer(np.empty((0, 1), dtype=np.int64), event, SimulationRandom(3))
    assert drawn.var() == pytest.approx(noise_variance(event), rel=0.02)


def test_public_sizes_say_when_the_model_helps():
    plan = SharesPlan(5000, 0.12, 50)
    assert plan.model_helps(*reversed(plan.split(2.0)))
    half = SharesPlan(3000, 0.5, 18)
    assert not half.model_helps(*reversed(half.split(0.5)))
    assert not SharesPlan(5000, 0.12, 50, accuracy=0.0).model_helps(3.0, 0.3)


def test_the_planned_width_is_that_of_the_intervals():
    labels, predicted, _truth = pool()
    plan = SharesPlan(N, RATE, K, accuracy=float((labels == predicted).mean()))
    pool_epsilon, inside = SharesPlan(N, RATE, K).split(2.0)
    squares = [((both.high - both.low)[0, :K] / 2) ** 2 for *_, both, _truth in runs(2.0, weight=plan.accuracy)]
    assert plan.width_with_model(inside, pool_epsilon) == pytest.approx(np.sqrt(np.mean(squares)), rel=0.2)


def test_labels_for_a_width():
    plan = SharesPlan(5000, 0.12, 18)
    found = plan.labels_for(0.02, 2.0)
    assert found is not None
    assert plan._narrowest(found, 2.0) <= 0.02 < plan._narrowest(found - 1, 2.0)
    assert plan.labels_for(1e-5, 0.1) is None
