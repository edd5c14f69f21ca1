"""Compare the cost of many runs with all products of few runs and with another library's convolution."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld import pld_pmf
from scipy.stats import binom

from privacy.accounting.events import ComposedCappedGateEvent, ComposedGateWindowEvent, KAnonymityGateEvent
from privacy.accounting.gate import gate_delta, gate_profiles


def laws(n, k, rate):
    """Return the output's law with n records of a text and with one less; the last place is suppression."""
    counts = np.arange(k, n + 1)
    return [np.append(binom.pmf(counts, size, rate), binom.cdf(k - 1, size, rate)) for size in (n, n - 1)]


def divergence(pairs, epsilon):
    more = fewer = np.ones(1)
    for one, other in pairs:
        more, fewer = np.outer(more, one).ravel(), np.outer(fewer, other).ravel()
    factor = math.exp(epsilon)
    return max(np.maximum(more - factor * fewer, 0).sum(), np.maximum(fewer - factor * more, 0).sum())


def window_cost(k, rate, epsilon, runs, adjacency="null"):
    return ComposedGateWindowEvent(KAnonymityGateEvent(k, rate, epsilon), runs, 1).cost(adjacency=adjacency)


@pytest.mark.parametrize(
    ("k", "rate", "epsilon", "runs", "most"),
    [(20, 0.25, 1.0, 2, 1.045), (20, 0.25, 1.0, 7, 1.28), (20, 0.25, 1.0, 24, 1.94), (14, 0.25, 0.5, 168, 3.1)],
)
def test_a_window_costs_far_less_than_its_runs_added_up(k, rate, epsilon, runs, most):
    cost = window_cost(k, rate, epsilon, runs)
    assert epsilon <= cost.epsilon <= most
    assert cost.delta == pytest.approx(runs * gate_delta(k, rate, epsilon), rel=1e-8)
    capped = ComposedCappedGateEvent(k, rate, epsilon, "contributor", runs).cost()
    assert capped == cost


@pytest.mark.parametrize(
    ("k", "rate", "epsilon", "runs", "sizes"),
    [
        (20, 0.25, 1.0, 2, range(20, 50)),
        (14, 0.25, 0.5, 2, range(14, 60)),
        (5, 0.3, 0.5, 3, range(5, 22, 2)),
        (5, 0.3, 0.5, 4, range(5, 20, 3)),
    ],
)
@pytest.mark.parametrize(("share", "sound"), [(1.0, True), (0.6, False)])
def test_no_sizes_of_a_text_in_so_many_runs_exceed_the_charge(k, rate, epsilon, runs, sizes, share, sound):
    """Every product of pairs of neighbours; three fifths of the epsilon are too little for some."""
    cost = window_cost(k, rate, epsilon, runs)
    pairs = {n: laws(n, k, rate) for n in sizes}
    chosen = itertools.combinations_with_replacement(sizes, runs)
    worst = max(divergence([pairs[n] for n in each], share * cost.epsilon) for each in chosen)
    assert (worst <= cost.delta) == sound


@pytest.mark.parametrize(("k", "rate", "epsilon", "runs"), [(6, 0.25, 1.0, 2), (4, 0.3, 0.5, 2)])
def test_moving_a_record_between_texts_counts_twice(k, rate, epsilon, runs):
    """In each run the old text loses a record and the new one gains it."""
    cost = window_cost(k, rate, epsilon, runs, "replace")
    worst = 0.0
    for n, m in itertools.product(range(k, 3 * k, 2), repeat=2):
        moved = [laws(n, k, rate), laws(m, k, rate)[::-1]] * runs
        worst = max(worst, divergence(moved, cost.epsilon))
    assert 0 < worst <= cost.delta
    assert epsilon <= cost.epsilon < 2 * runs * epsilon


def connected_dots(k, rate, epsilons):
    """Return the curve of one run by brute force over the sizes of a text, record added."""
    best = np.zeros_like(epsilons)
    for n in range(k, 12 * k):
        more, fewer = laws(n, k, rate)
        best = np.maximum(best, np.maximum(more - np.exp(epsilons)[:, None] * fewer, 0).sum(axis=1))
    return best


@pytest.mark.parametrize(("k", "rate", "epsilon"), [(20, 0.25, 1.0), (14, 0.25, 0.5)])
def test_another_convolution_of_curves_by_brute_force_gives_the_same(k, rate, epsilon):
    step = epsilon / 256
    places = np.arange(-math.ceil(-math.log1p(-rate) / step) - 1, round(4 * epsilon / step))
    curve = connected_dots(k, rate, step * places)
    swapped = 1 - np.exp(-step * places[::-1]) * (1 - curve[::-1])
    laws_of_loss = [
        pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, first, last, np.clip(deltas, 0, 1))
        for first, last, deltas in ((places[0], places[-1], curve), (-places[-1], -places[0], swapped))
    ]
    for runs in (2, 7, 24, 168):
        cost = window_cost(k, rate, epsilon, runs)
        theirs = max(law.self_compose(runs).get_epsilon_for_delta(cost.delta) for law in laws_of_loss)
        grid = epsilon * math.sqrt(runs) / 512
        assert theirs - 1e-3 * epsilon <= cost.epsilon <= theirs + 2 * grid


@pytest.mark.parametrize(("k", "rate"), [(2, 0.5), (20, 0.25), (14, 0.9), (60, 0.01)])
def test_both_directions_of_the_curve_are_the_larger_delta(k, rate):
    epsilons = np.array([1e-3, 0.01, 0.1, 0.3, 1.0, 3.0])
    forward, backward = gate_profiles(k, rate, epsilons)
    assert np.maximum(forward, backward) == pytest.approx(gate_delta(k, rate, epsilons), rel=1e-12)
    pairs = [laws(n, k, rate) for n in range(k, k + 400, 7)]
    for place, factor in enumerate(np.exp(epsilons)):
        for one, other in pairs:
            assert np.maximum(one - factor * other, 0).sum() <= forward[place] * (1 + 1e-9) + 1e-15
            assert np.maximum(other - factor * one, 0).sum() <= backward[place] * (1 + 1e-9) + 1e-15
