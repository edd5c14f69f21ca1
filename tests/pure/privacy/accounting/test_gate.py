import math
import time

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.accounting import gate
from privacy.accounting.gate import bernoulli_divergence, binomial_pmf

GRID_RATES = np.linspace(0.1, 0.9, 9)
GRID_EPSILONS = np.array([0.25, 0.5, 0.75, 1.0])


def masses(n, rate):
    p = mpmath.mpf(rate)
    return [mpmath.binomial(n, j) * p**j * (1 - p) ** (n - j) for j in range(n + 1)]


def brute_divergence(n, k, rate, epsilon):
    with mpmath.workdps(50):
        more, fewer = masses(n, rate), [*masses(n - 1, rate), mpmath.mpf(0)]
        pairs = list(zip(more[k:], fewer[k:], strict=True))
        pairs.append((mpmath.fsum(more[:k]), mpmath.fsum(fewer[:k])))
        grow = mpmath.exp(epsilon)
        forward = mpmath.fsum(max(p - grow * q, 0) for p, q in pairs)
        backward = mpmath.fsum(max(q - grow * p, 0) for p, q in pairs)
        return float(forward), float(backward)


def brute_delta(k, rate, epsilon, up_to):
    return max(max(brute_divergence(n, k, rate, epsilon)) for n in range(1, up_to))


@settings(max_examples=12, deadline=None)
@given(k=st.integers(1, 8), rate=st.floats(0.05, 0.95), epsilon=st.floats(0.02, 3))
def test_delta_is_the_largest_divergence_over_record_counts(k, rate, epsilon):
    gamma = 1 - (1 - rate) * math.exp(-epsilon)
    brute = brute_delta(k, rate, epsilon, up_to=min(90, math.ceil(3 * k / gamma) + 25))
    computed = gate.gate_delta(k, rate, epsilon)
    assert computed >= brute * (1 - 1e-9)
    # The brute force stops early, so only what it can see must agree.
    last = brute_divergence(89, k, rate, epsilon)
    if max(last) < brute / 2:
        assert computed == pytest.approx(brute, rel=1e-9, abs=1e-15)


@given(n=st.integers(1, 40), k=st.integers(1, 12), rate=st.floats(0.02, 0.98), epsilon=st.floats(0.001, 3))
def test_no_pair_of_neighbours_exceeds_delta(n, k, rate, epsilon):
    delta = gate.gate_delta(k, rate, epsilon)
    assert max(brute_divergence(n, k, rate, epsilon)) <= delta * (1 + 1e-9) + 1e-15


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("k", "rate", "epsilon"), [(20, 0.3, 0.5), (5, 0.1, 0.25), (14, 0.25, 1.0), (3, 0.9, 0.2), (2, 0.6, 0.01)]
)
def test_delta_to_nine_digits(k, rate, epsilon):
    brute = brute_delta(k, rate, epsilon, up_to=80)
    assert gate.gate_delta(k, rate, epsilon) == pytest.approx(brute, rel=1e-9)


def test_published_gate_values():
    assert gate.gate_delta(20, 0.3, 0.5) == pytest.approx(2.497e-5, rel=1e-3)
    assert gate.gate_delta(20, 0.3, 0.5, "li2012") == pytest.approx(4.536e-4, rel=1e-3)
    assert gate.gate_minimum_k(1.0, 1e-6, 0.25) == 14


def test_an_unsampled_or_single_record_gate_has_the_delta_of_its_coin():
    assert gate.gate_delta(7, 1.0, 2.0) == 1.0
    # k = 1 lets a unique text out whenever its coin comes up.
    for rate in (0.1, 0.5, 0.9):
        assert gate.gate_delta(1, rate, -math.log1p(-rate) + 0.1) == pytest.approx(rate, rel=1e-12)


@pytest.mark.parametrize(("k", "rate", "epsilon"), [(20, 0.3, 0.5), (8, 0.1, 0.25), (11, 0.5, 1.0)])
def test_li_bound_is_the_largest_tail_over_record_counts(k, rate, epsilon):
    with mpmath.workdps(40):
        gamma = 1 - (1 - mpmath.mpf(rate)) * mpmath.exp(-mpmath.mpf(epsilon))
        worst = max(
            mpmath.fsum(masses(n, rate)[max(k, math.floor(gamma * n) + 1) :])
            for n in range(k, 3 * math.ceil(k / gamma))
        )
    assert gate.gate_delta(k, rate, epsilon, "li2012") == pytest.approx(float(worst), rel=1e-9)


def test_li_maximum_is_not_always_at_the_first_peak():
    """The place usually quoted, n = ceil(k / gamma - 1), underestimates the bound."""
    found = 0
    for k in range(2, 40):
        for rate in GRID_RATES:
            for epsilon in (0.3, 0.7, 1.5, 2.5):
                if epsilon < -math.log1p(-rate):
                    continue
                gamma = 1 - (1 - rate) * math.exp(-epsilon)
                n = math.ceil(k / gamma) - 1
                first = float(binomial_pmf(np.arange(k, n + 1), n, rate).sum())
                bound = gate.gate_delta(k, rate, epsilon, "li2012")
                assert bound >= first * (1 - 1e-9)
                found += bound > first * (1 + 1e-6)
    assert found > 10


def test_exact_delta_is_below_the_li_bound_on_the_whole_grid():
    ks = np.array([20, 100, 200, 500])[:, None]
    for rate in GRID_RATES:
        epsilons = GRID_EPSILONS[-math.log1p(-rate) <= GRID_EPSILONS]
        exact, li = gate.gate_delta(ks, rate, epsilons), gate.gate_delta(ks, rate, epsilons, "li2012")
        assert np.all(exact <= li * (1 + 1e-9))


def test_li_bound_refuses_an_epsilon_it_does_not_cover():
    with pytest.raises(ValueError, match=r"epsilon must be >= -ln\(1 - sampling_rate\).*got 0.25"):
        gate.gate_delta(20, 0.3, 0.25, "li2012")
    assert 0 < gate.gate_delta(20, 0.3, 0.25) < 1


@given(k=st.integers(1, 200), rate=st.floats(0.01, 0.98), epsilon=st.floats(0.01, 4))
def test_delta_falls_with_k_and_epsilon_and_rises_with_the_rate(k, rate, epsilon):
    here = gate.gate_delta(k, rate, epsilon)
    slack = 1 + 1e-9
    assert gate.gate_delta(k + 1, rate, epsilon) <= here * slack
    assert gate.gate_delta(k, rate, epsilon * 1.05) <= here * slack
    assert gate.gate_delta(k, min(0.99, rate * 1.01), epsilon) >= here / slack


@given(rate=st.floats(0.02, 0.95), epsilon=st.floats(0.1, 4), exponent=st.floats(-12, -2))
def test_minimum_k_is_the_smallest(rate, epsilon, exponent):
    delta = 10**exponent
    k = gate.gate_minimum_k(epsilon, delta, rate)
    assert gate.gate_delta(k, rate, epsilon) <= delta
    assert k == 1 or gate.gate_delta(k - 1, rate, epsilon) > delta


def test_minimum_k_of_the_published_method_is_the_smallest():
    k = gate.gate_minimum_k(0.5, 1e-6, 0.3, "li2012")
    assert gate.gate_delta(k, 0.3, 0.5, "li2012") <= 1e-6 < gate.gate_delta(k - 1, 0.3, 0.5, "li2012")
    assert k > gate.gate_minimum_k(0.5, 1e-6, 0.3)


def test_a_range_of_k_equals_its_members():
    ks = np.arange(1, 40)
    whole = gate.gate_delta(ks, 0.2, 0.4)
    assert whole == pytest.approx([gate.gate_delta(int(k), 0.2, 0.4) for k in ks], rel=1e-12)


@given(rate=st.floats(0.02, 0.97), epsilon=st.floats(0.02, 4), exponent=st.floats(-14, -1))
def test_nothing_beyond_the_stopping_threshold_exceeds_the_target(rate, epsilon, exponent):
    """The proof that lets the scan end, checked on the thresholds right behind it and far out."""
    target = 10**exponent
    last = gate.last_threshold(target, rate, epsilon, "exact")
    beyond = math.floor(last) + 1 + np.unique(np.geomspace(1, 2000, 60).astype(int)) - 1.0
    assert np.all(gate.exact_curve(beyond, rate, epsilon) <= target * (1 + 1e-9))


@given(rate=st.floats(0.02, 0.9), extra=st.floats(0.01, 3), exponent=st.floats(-14, -1))
def test_nothing_beyond_the_li_stopping_threshold_exceeds_the_target(rate, extra, exponent):
    target, epsilon = 10**exponent, -math.log1p(-rate) + extra
    beyond = math.floor(gate.last_threshold(target, rate, epsilon, "li2012")) + np.arange(1.0, 400.0)
    assert np.all(gate.li_curve(beyond, rate, epsilon) <= target * (1 + 1e-9))


@settings(max_examples=12, deadline=None)
@given(t=st.integers(1, 10), rate=st.floats(0.3, 0.95), epsilon=st.floats(0.02, 3))
def test_one_record_count_is_the_peak_for_every_threshold(t, rate, epsilon):
    """P(Bin(n) >= t) - e^eps P(Bin(n-1) >= t) and its mirror image peak over n where the proof puts them."""
    with mpmath.workdps(40):
        grow = mpmath.exp(mpmath.mpf(epsilon))
        rows = [masses(n, rate) for n in range(60)]
        up = [mpmath.fsum(rows[n][t:]) - grow * mpmath.fsum(rows[n - 1][t:]) for n in range(1, 60)]
        down = [mpmath.fsum(rows[n - 1][:t]) - grow * mpmath.fsum(rows[n][:t]) for n in range(1, 60)]
    assert gate.forward_curve(np.array([float(t)]), rate, epsilon)[0] == pytest.approx(float(max(up)), rel=1e-9)
    backward = gate.backward_curve(np.array([t - 1.0]), rate, epsilon)[0]
    # The mirror image may peak beyond the sixtieth record; what is seen must not exceed it.
    seen = max(0.0, float(max(down)))
    assert backward >= seen * (1 - 1e-9)
    if seen > 0 and down[-1] < seen / 2:
        assert backward == pytest.approx(seen, rel=1e-9)


@pytest.mark.parametrize(("u", "rate", "epsilon"), [(0, 0.5, 0.3), (4, 0.9, 0.2), (7, 0.8, 0.5), (3, 0.6, 0.1)])
def test_the_mirror_image_to_nine_digits(u, rate, epsilon):
    with mpmath.workdps(40):
        grow = mpmath.exp(mpmath.mpf(epsilon))
        rows = [masses(n, rate) for n in range(70)]
        down = [mpmath.fsum(rows[n - 1][: u + 1]) - grow * mpmath.fsum(rows[n][: u + 1]) for n in range(1, 70)]
    peak = int(np.argmax([float(value) for value in down]))
    assert peak < 60
    assert gate.backward_curve(np.array([float(u)]), rate, epsilon)[0] == pytest.approx(float(down[peak]), rel=1e-9)


@given(n=st.integers(1, 5000), share=st.floats(0, 1), p=st.floats(0.001, 0.999))
def test_binomial_masses_to_ten_digits(n, share, p):
    j = round(share * n)
    with mpmath.workdps(50):
        q = mpmath.mpf(p)
        exact = mpmath.binomial(n, j) * q**j * (1 - q) ** (n - j)
    if exact > mpmath.mpf("1e-290"):
        assert float(binomial_pmf(j, n, p)) == pytest.approx(float(exact), rel=2e-11)


@given(n=st.integers(1, 3000), p=st.floats(0.001, 0.999))
def test_no_binomial_mass_exceeds_the_bound_behind_the_stopping_rule(n, p):
    assert binomial_pmf(np.arange(n + 1), n, p).max() <= 1 / math.sqrt(2 * math.e * n * p * (1 - p)) * (1 + 1e-12)


def test_masses_outside_the_support_are_zero():
    assert binomial_pmf([-1, 6], [5, 5], 0.5).tolist() == [0.0, 0.0]
    assert bernoulli_divergence(0.3, 0.3) == pytest.approx(0.0, abs=1e-16)


@given(epsilon=st.floats(0, 600), delta=st.floats(0, 1), first=st.floats(0.01, 1), share=st.floats(0.01, 1))
def test_amplification_mixes_the_identity_in(epsilon, delta, first, share):
    second = first * share
    amplified, amplified_delta = gate.amplify_by_sampling(epsilon, delta, first, second)
    with mpmath.workdps(400):
        ratio = mpmath.mpf(second) / mpmath.mpf(first)
        expected = mpmath.log(1 + ratio * (mpmath.exp(epsilon) - 1))
    assert amplified == pytest.approx(float(expected), rel=1e-9, abs=1e-15)
    assert amplified_delta == pytest.approx(delta * second / first, rel=1e-12)
    assert amplified <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [((0, 0.3, 0.5), "got 0"), ((2.5, 0.3, 0.5), "got 2.5"), ((20, 0.0, 0.5), "got 0.0"), ((20, 0.3, 0.0), "got 0.0")],
)
def test_gate_refuses_and_names_the_value(arguments, seen):
    with pytest.raises(ValueError, match=seen):
        gate.gate_delta(*arguments)


def test_other_refusals():
    with pytest.raises(ValueError, match="method must be one of exact, li2012, got 'li'"):
        gate.gate_delta(20, 0.3, 0.5, "li")
    with pytest.raises(ValueError, match="without sampling every k has delta 1"):
        gate.gate_minimum_k(1.0, 1e-6, 1.0)
    with pytest.raises(ValueError, match=r"delta must lie in \(0, 1\), got 0"):
        gate.gate_minimum_k(1.0, 0, 0.5)
    with pytest.raises(ValueError, match=r"0\.1 to 0\.2"):
        gate.amplify_by_sampling(1.0, 0.0, 0.1, 0.2)


def test_tiny_deltas_are_bounded_not_zero():
    assert 0 < gate.gate_delta(5000, 0.1, 1.0) <= gate.NEGLIGIBLE


def test_extreme_losses():
    assert gate.gate_delta(3, 0.5, 900.0) == pytest.approx(0.125, rel=1e-9)
    assert gate.gate_delta(5, 0.3, 1e-9) == pytest.approx(brute_delta(5, 0.3, 1e-9, 40), rel=1e-9)


def test_planning_answers_within_a_hundred_milliseconds_and_the_grid_within_a_second():
    gate.gate_delta(20, 0.3, 0.5)
    start = time.thread_time()
    gate.gate_delta(np.arange(20, 501)[:, None, None], GRID_RATES[:, None], GRID_EPSILONS)
    assert time.thread_time() - start < 1
    start = time.thread_time()
    gate.gate_minimum_k(0.25, 1e-9, 0.3)
    assert time.thread_time() - start < 0.1
