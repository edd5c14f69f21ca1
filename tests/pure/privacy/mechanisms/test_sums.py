import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpal.recompute.sums import NoisySums
from privacy.accounting.composition import gaussian_epsilon
from privacy.accounting.sums import SumsEvent, charged_delta, sums_event, sums_mu
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom
from privacy.mechanisms.sums import STEPS, exact_sums, release_sums

NEIGHBOURS = 4_000


def unit_rows(rng, count, d):
    """Rows on the sphere: spread, along one column, and with entries of equal size."""
    rows = rng.normal(size=(count, d))
    rows[::4] = np.eye(d)[rng.integers(d, size=len(rows[::4]))]
    rows[1::4] = rng.choice([-1.0, 1.0], size=rows[1::4].shape)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True) * (1 - 1e-12)


def labels(rng, count, n_classes, most):
    members = np.zeros((count, n_classes), dtype=bool)
    for row in members:
        row[rng.choice(n_classes, size=most, replace=False)] = True
    return members


def distance(event, first, second):
    moments, sums = (
        (one - other).astype(float)
        for one, other in zip(exact_sums([first], event), exact_sums([second], event), strict=True)
    )
    square = (sums / STEPS * event.norm_bound / event.class_sigma) ** 2
    total = square.sum()
    if event.moment_sigma:
        unit = (event.norm_bound / STEPS) ** 2 / event.moment_sigma
        # Entries beside the diagonal are released once, with the root of one half of the noise.
        total += (np.triu(moments, 1) ** 2).sum() * unit**2 * 2 + (moments.diagonal() ** 2).sum() * unit**2
    return math.sqrt(total)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("adjacency", ["null", "replace"])
@pytest.mark.parametrize("moment_sigma", [0.0, 1.0])
@pytest.mark.parametrize("most", [1, 2])
def test_empirical_sensitivity(adjacency, moment_sigma, most):
    """4,000 neighbours: what one slot moves is within the stated ratio and comes near it."""
    rng, d, n_classes = np.random.default_rng(20_251_201), 3, 5
    event = SumsEvent(d, n_classes, 1.0, moment_sigma, 1.0, most)
    rows, others = unit_rows(rng, NEIGHBOURS, d), unit_rows(rng, NEIGHBOURS, d)
    members, theirs = labels(rng, NEIGHBOURS, n_classes, most), labels(rng, NEIGHBOURS, n_classes, most)
    # The worst of replacements: the opposite row of the same classes.
    others[:50], theirs[:50] = -rows[:50], members[:50]
    nobody = (np.zeros((1, d)), np.zeros((1, n_classes), dtype=bool))
    moved = [
        distance(
            event,
            (rows[[place]], members[[place]]),
            (others[[place]], theirs[[place]]) if adjacency == "replace" else nobody,
        )
        for place in range(NEIGHBOURS)
    ]
    stated = event.gaussian_mu(adjacency=adjacency)
    assert max(moved) <= stated
    assert max(moved) >= 0.75 * stated


def test_the_number_of_classes_costs_nothing():
    prices = {SumsEvent(10, classes, 1.0, 5.0, 3.0, delta=1e-6).cost().epsilon for classes in (2, 10, 1_000)}
    assert len(prices) == 1


@given(
    epsilon=st.floats(0.01, 10),
    exponent=st.floats(-12, -2),
    share=st.floats(0, 0.95),
    bound=st.floats(0.1, 10),
    most=st.integers(1, 3),
    adjacency=st.sampled_from(["null", "replace", "add_remove"]),
)
def test_solved_events_cost_what_was_asked_and_hardly_less(epsilon, exponent, share, bound, most, adjacency):
    delta = 10.0**exponent
    event = sums_event(
        sums_mu(epsilon, delta),
        dimension=4,
        n_classes=5,
        norm_bound=bound,
        moment_share=share,
        labels_per_record=most,
        delta=charged_delta(delta),
        adjacency=adjacency,
    )
    cost = event.cost(adjacency=adjacency)
    assert 0.99999 * epsilon <= cost.epsilon <= epsilon
    assert 0.999 * delta <= cost.delta <= delta


def test_price_against_a_second_implementation():
    """The accountant of the `dp_accounting` library says the same of a Gaussian mechanism of this ratio."""
    from dp_accounting.pld import privacy_loss_distribution  # noqa: PLC0415  # slow import

    event = SumsEvent(20, 7, 1.2, 9.0, 4.0, delta=1e-6)
    mu = math.sqrt((1.2**2 / 9.0) ** 2 + (1.2 / 4.0) ** 2)
    assert event.gaussian_mu() == pytest.approx(mu)
    other = privacy_loss_distribution.from_gaussian_mechanism(1 / mu).get_epsilon_for_delta(1e-6)
    assert event.cost().epsilon == pytest.approx(other, rel=1e-3)
    assert event.cost().rho == pytest.approx(mu**2 / 2)
    # On top comes what the law on a grid may differ by from the continuous one: in epsilon, and in delta.
    assert event.cost().epsilon >= gaussian_epsilon(mu, 1e-6) + 0.99e-8
    assert event.cost().delta >= 1e-6 * (1 + 0.99e-8)


def test_sums_do_not_depend_on_order_or_blocks():
    rng = np.random.default_rng(3)
    rows, members = unit_rows(rng, 5_000, 6), labels(rng, 5_000, 4, 1)
    event = SumsEvent(6, 4, 1.0, 1.0, 1.0)
    whole = exact_sums([(rows, members)], event)
    parts = exact_sums([(rows[3_000:][::-1], members[3_000:][::-1]), (rows[:3_000], members[:3_000])], event)
    assert all((one == other).all() for one, other in zip(whole, parts, strict=True))


@pytest.mark.parametrize("source", [SecureRandom(), SimulationRandom(1)], ids=["secure", "seeded"])
def test_release_is_symmetric_and_near_the_truth(source):
    rng = np.random.default_rng(5)
    rows, members = unit_rows(rng, 4_000, 4), labels(rng, 4_000, 3, 1)
    event = SumsEvent(4, 3, 1.0, 7.0, 3.0)
    noisy = release_sums([(rows, members)], event, rng=source)
    assert (noisy.moments == noisy.moments.T).all()
    # Six standard deviations, and the shortening of rows to the grid: 4,000 steps of 2**-13 at most.
    assert np.abs(noisy.moments - rows.T @ rows).max() < 6 * 7 + 1.5
    assert np.abs(noisy.class_sums - members.T.astype(float) @ rows).max() < 6 * 3 + 1
    assert release_sums([(rows, members)], SumsEvent(4, 3, 1.0, 0.0, 3.0), rng=source).moments is None


def test_blocks_add_up_with_their_noise():
    first = NoisySums(np.eye(2), np.ones((3, 2)), 4.0, 9.0)
    both = first.plus(NoisySums(2 * np.eye(2), np.ones((3, 2)), 1.0, 2.0))
    assert (both.moments == 3 * np.eye(2)).all()
    assert (both.class_sums == 2).all()
    assert (both.moment_variance, both.class_variance) == (5.0, 11.0)
    half = both.times(0.5)
    assert (half.moments == 1.5 * np.eye(2)).all()
    assert (half.class_sums == 1).all()
    assert (half.moment_variance, half.class_variance) == (1.25, 2.75)
    for other in (NoisySums(None, np.ones((3, 2)), 0.0, 1.0), NoisySums(np.eye(2), np.ones((4, 2)), 1.0, 1.0)):
        with pytest.raises(ValueError, match="one shape"):
            first.plus(other)


@pytest.mark.parametrize(
    "wrong",
    [
        {"dimension": 0},
        {"n_classes": 0},
        {"norm_bound": 0.0},
        {"moment_sigma": -1.0},
        {"class_sigma": 0.0},
        {"labels_per_record": 4},
        {"delta": 1.0},
        {"dimension": 3_000},
    ],
)
def test_parameters_out_of_range(wrong):
    values = {"dimension": 3, "n_classes": 3, "norm_bound": 1.0, "moment_sigma": 1.0, "class_sigma": 1.0} | wrong
    with pytest.raises(ValueError, match=r"must|at most"):
        SumsEvent(**values)


def test_records_beyond_what_is_declared_are_refused():
    event = SumsEvent(2, 3, 1.0, 1.0, 1.0)
    for rows, members in (
        ([[1.1, 0.0]], [[True, False, False]]),
        ([[1.0, 0.0]], [[True, True, False]]),
        ([[1.0]], [[True, False, False]]),
        ([[1.0, 0.0]], [[True, False]]),
    ):
        with pytest.raises(ValueError, match=r"clip|at most|must have"):
            release_sums([(np.array(rows), np.array(members))], event, rng=SimulationRandom(1))
