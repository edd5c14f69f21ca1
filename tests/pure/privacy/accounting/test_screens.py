import itertools
import math

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting import screens

rates = st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 0.99)).map(lambda pair: (max(pair), min(pair)))
losses = st.floats(0.01, 5)


def batch_probability(weights, batch):
    left, probability = sum(weights), 1.0
    for index in batch:
        probability *= weights[index] / left
        left -= weights[index]
    return probability


def batches(pool, picks):
    return itertools.permutations(pool, picks)


def worst_batch_loss(scores, changed_score, scale, picks):
    before = [math.exp(scale * score) for score in scores]
    after = [math.exp(scale * changed_score), *before[1:]]
    ratios = [
        math.log(batch_probability(before, batch) / batch_probability(after, batch))
        for batch in batches(range(len(scores)), picks)
    ]
    return max(ratios), min(ratios)


@given(pair=rates, first=st.floats(0, 1), second=st.floats(0, 1))
def test_any_two_selection_probabilities_stay_within_the_losses(pair, first, second):
    q_hi, q_lo = pair
    p, p_other = (q_lo + share * (q_hi - q_lo) for share in (first, second))
    selected, skipped = screens.screen_losses(q_hi, q_lo)
    assert abs(math.log(p / p_other)) <= selected + 1e-12
    assert abs(math.log((1 - p) / (1 - p_other))) <= skipped + 1e-12


@given(pair=rates)
def test_losses_agree_with_fifty_digits(pair):
    q_hi, q_lo = pair
    with mpmath.workdps(50):
        hi, lo = mpmath.mpf(q_hi), mpmath.mpf(q_lo)
        expected = float(mpmath.log(hi / lo)), float(mpmath.log((1 - lo) / (1 - hi)))
    assert screens.screen_losses(q_hi, q_lo) == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_impossible_answers_cost_everything():
    assert screens.screen_losses(1.0, 0.5) == (math.log(2), math.inf)
    assert screens.screen_losses(0.5, 0.0) == (math.inf, math.log(2))
    assert screens.screen_losses(0.5, 0.5) == (0.0, 0.0)
    assert screens.screen_losses(1.0, 1.0) == (0.0, 0.0)


@pytest.mark.parametrize("pair", [(0.2, 0.3), (1.1, 0.5), (0.5, -0.1), (math.nan, 0.1)])
def test_rates_out_of_range_are_refused(pair):
    with pytest.raises(ValueError, match="q_hi="):
        screens.screen_losses(*pair)


@given(share=st.floats(0.001, 0.95), norm_bound=st.floats(0.1, 10), epsilon=losses)
def test_exponential_screen_is_the_screen_of_its_extreme_rates(share, norm_bound, epsilon):
    threshold = share * norm_bound
    with mpmath.workdps(50):
        exponent = mpmath.mpf(epsilon) / (mpmath.mpf(norm_bound) - mpmath.mpf(threshold))
        q_hi, q_lo = mpmath.exp(-threshold * exponent), mpmath.exp(-norm_bound * exponent)
        expected = float(max(mpmath.mpf(epsilon), mpmath.log((1 - q_lo) / (1 - q_hi))))
    assert screens.exponential_screen_epsilon(threshold, norm_bound, epsilon) == pytest.approx(expected, rel=1e-9)


def test_exponential_screen_without_a_slab_has_no_bound():
    assert screens.exponential_screen_epsilon(0.0, 1.0, 1.0) == math.inf
    previous = 0.0
    for threshold in (0.1, 0.01, 0.001):
        cost = screens.exponential_screen_epsilon(threshold, 1.0, 1.0)
        assert cost > previous
        previous = cost
    with pytest.raises(ValueError, match=r"threshold must lie in \[0, 1.0\), got 1.0"):
        screens.exponential_screen_rates(1.0, 1.0, 1.0)


@given(pair=rates, epsilon=losses, x=st.floats(0, 1), other=st.floats(0, 1))
def test_visible_stream_bounds_every_outcome(pair, epsilon, x, other):
    """Outcomes: skipped, or selected followed by an update whose density ratio is at most e^epsilon."""
    q_hi, q_lo = pair
    p, p_other = (q_lo + share * (q_hi - q_lo) for share in (x, other))
    cost = screens.stream_epsilon(q_hi, q_lo, epsilon, selection_visible=True)
    assert math.log((1 - p) / (1 - p_other)) <= cost + 1e-12
    assert math.log(p / p_other) + epsilon <= cost + 1e-12


@given(
    pair=rates,
    epsilon=losses,
    x=st.floats(0, 1),
    other=st.floats(0, 1),
    ends=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
)
def test_hidden_stream_bounds_the_mixture_density(pair, epsilon, x, other, ends):
    """Likelihoods of the window's sum with the record's gradient in it, relative to the sum without."""
    q_hi, q_lo = pair
    p, p_other = (q_lo + share * (q_hi - q_lo) for share in (x, other))
    with_record, with_other = (math.exp(end * epsilon / 2) for end in ends)
    replaced = math.log((1 - p + p * with_record) / (1 - p_other + p_other * with_other))
    cost = screens.stream_epsilon(q_hi, q_lo, epsilon, selection_visible=False)
    assert abs(replaced) <= cost + 1e-12
    assert cost <= epsilon + 1e-12
    nulled = math.log(1 - p + p * math.exp(ends[0] * epsilon))
    assert abs(nulled) <= screens.stream_epsilon(q_hi, q_lo, epsilon, selection_visible=False, adjacency="null") + 1e-12


def test_null_loss_of_a_hidden_stream_exceeds_the_replacement_formula():
    """Feeding the null loss of an update into the formula for replacements would undercharge."""
    as_replacement = screens.stream_epsilon(0.1, 0.05, 2.0, selection_visible=False)
    as_null = screens.stream_epsilon(0.1, 0.05, 2.0, selection_visible=False, adjacency="null")
    attained = math.log(1 - 0.1 + 0.1 * math.exp(2.0))
    assert as_null == pytest.approx(attained, rel=1e-12)
    assert as_replacement < as_null


@given(rate=st.floats(1e-6, 1), epsilon=st.floats(0, 2000))
def test_hidden_selection_survives_large_losses(rate, epsilon):
    with mpmath.workdps(60):
        q, e = mpmath.mpf(rate), mpmath.mpf(epsilon)
        null = float(mpmath.log(1 + q * (mpmath.exp(e) - 1)))
    assert screens.hidden_selection_epsilon(rate, epsilon) == pytest.approx(null, rel=1e-9, abs=1e-15)
    assert screens.hidden_selection_epsilon(rate, epsilon, "replace") >= null * (1 - 1e-9)
    assert screens.hidden_selection_epsilon(rate, epsilon, "replace") <= 2 * epsilon * (1 + 1e-9) + 1e-12


@given(
    rate=st.floats(0.001, 1),
    answers=st.lists(st.tuples(st.floats(0, 3), st.floats(-1, 1), st.floats(-1, 1)), max_size=5),
)
def test_releases_from_one_coin_stay_within_their_charges(rate, answers):
    """Every release moves the likelihoods of a record, and of its replacement, by some factor within its loss."""
    with_record = with_other = 1.0
    null = replaced = released = 0.0
    for epsilon, share, share_other in answers:
        with_record *= math.exp(share * epsilon)
        with_other *= math.exp(share_other * epsilon)
        effective = screens.rate_after_release(rate, released)
        null += screens.hidden_selection_epsilon(effective, epsilon)
        replaced += screens.hidden_selection_epsilon(effective, epsilon, "replace")
        released += epsilon
        here, there = (1 - rate + rate * likelihood for likelihood in (with_record, with_other))
        assert abs(math.log(here)) <= null + 1e-9
        assert abs(math.log(here / there)) <= replaced + 1e-9


@given(rate=st.floats(0.001, 1), losses=st.lists(st.floats(0.01, 3), min_size=2, max_size=4))
def test_releases_from_one_coin_that_all_lean_one_way_use_up_their_charges(rate, losses):
    """Answers that each speak for the record as loudly as they may: together they tell all that was charged."""
    told = math.log(1 - rate + rate * math.exp(math.fsum(losses)))
    charged = released = 0.0
    for epsilon in losses:
        charged += screens.hidden_selection_epsilon(screens.rate_after_release(rate, released), epsilon)
        released += epsilon
    assert charged == pytest.approx(told, rel=1e-9)


def test_hidden_selection_refuses_what_it_cannot_price():
    with pytest.raises(ValueError, match="rate must lie"):
        screens.hidden_selection_epsilon(1.5, 1.0)
    with pytest.raises(ValueError, match="adjacency must be"):
        screens.hidden_selection_epsilon(0.5, 1.0, "add_remove")
    assert screens.hidden_selection_epsilon(0.0, 5.0) == 0.0


@given(pair=rates, exposures=st.integers(1, 6), data=st.data())
def test_no_course_through_repeated_screens_costs_more_than_its_cap(pair, exposures, data):
    q_hi, q_lo = pair
    cost = screens.exposure_epsilon(q_hi, q_lo, exposures)
    shares = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=exposures, max_size=exposures)
    loss = 0.0
    for share, share_other in data.draw(shares):
        p, p_other = (q_lo + s * (q_hi - q_lo) for s in (share, share_other))
        assert loss + math.log(p / p_other) <= cost + 1e-9
        loss += math.log((1 - p) / (1 - p_other))
    assert loss <= cost + 1e-9


@given(
    scores=st.lists(st.floats(0, 1), min_size=2, max_size=5),
    changed=st.floats(0, 1),
    scale=st.floats(0.05, 4),
    data=st.data(),
)
def test_top_c_bounds_every_batch(scores, changed, scale, data):
    picks = data.draw(st.integers(1, len(scores)))
    highest, lowest = worst_batch_loss(scores, changed, scale, picks)
    cost = screens.top_c_epsilon(len(scores), picks, scale)
    assert max(highest, -lowest) <= cost + 1e-9
    # zCDP from the range: the spread of losses of this pair must fit the range behind rho.
    assert highest - lowest <= math.sqrt(8 * screens.top_c_rho(len(scores), picks, scale)) + 1e-9


@pytest.mark.parametrize("picks", [1, 2, 3, 5])
def test_top_c_cost_is_attained(picks):
    """All other scores at zero and the record moving from one to zero: leaving it out attains the sum."""
    pool, scale = 5, 1.5
    highest, lowest = worst_batch_loss([0.0] * pool, 1.0, scale, picks)
    # In the other direction picking it at once costs the scale, less what the rest of the pool weighs.
    if picks < pool:
        assert highest == pytest.approx(screens.top_c_shift(pool, picks, scale), rel=1e-9)
    assert max(highest, -lowest) <= screens.top_c_epsilon(pool, picks, scale) + 1e-12


def test_a_large_pool_pays_the_scale_once_not_per_pick():
    assert screens.top_c_epsilon(100_000, 100, 1.0) == 1.0
    assert screens.top_c_shift(100_000, 100, 1.0) < 0.002


@given(scale=st.floats(0.1, 2), data=st.data())
def test_a_series_pays_the_scale_once_and_every_rounds_shift(scale, data):
    """All courses of three rounds on a pool of six, scores redrawn every round as a new model would."""
    pool, picks, rounds = 6, 1, 3
    scores = [[data.draw(st.sampled_from([0.0, 0.5, 1.0])) for _ in range(pool)] for _ in range(rounds)]
    changed = [data.draw(st.sampled_from([0.0, 1.0])) for _ in range(rounds)]
    opened = scale + screens.top_c_shift(pool, picks, scale)
    continued = sum(screens.top_c_shift(pool - picks * r, picks, scale) for r in range(1, rounds))
    worst = 0.0
    for course in itertools.permutations(range(pool), rounds):
        loss, left = 0.0, list(range(pool))
        for r, picked in enumerate(course):
            before = [math.exp(scale * scores[r][i]) for i in left]
            after = [math.exp(scale * (changed[r] if i == 0 else scores[r][i])) for i in left]
            place = left.index(picked)
            loss += math.log(before[place] / sum(before) * sum(after) / after[place])
            left.remove(picked)
        worst = max(worst, abs(loss))
    assert worst <= opened + continued + 1e-9


def test_a_batch_that_was_lost_and_drawn_again_is_outside_its_series():
    """A record picked in an attempt that died is in the pool yet: picked again, it tells the scale twice."""
    scale, pool = 2.0, 50
    twice = 2 * math.log(math.exp(scale) / (pool - 1 + math.exp(scale)) * pool)
    shift = screens.top_c_shift(pool, 1, scale)
    assert twice > (scale + shift) + shift
    assert twice <= 2 * (scale + shift)


def test_a_series_can_cost_more_than_its_dearest_round():
    """Rounds cannot be priced by their maximum: what leaving a record out tells adds up."""
    scale, pool, last = 1.0, 60, 20
    high = math.exp(scale)
    # Left out of forty rounds at score zero where the neighbour scores one, all others at zero; then the next
    # model turns the scores round and the record is picked.
    left_out = sum(math.log((size - 1 + high) / size) for size in range(pool, last, -1))
    picked = math.log(high / (last - 1 + high) * last)
    total = left_out + picked
    dearest = max(screens.top_c_epsilon(size, 1, scale) for size in range(last, pool + 1))
    assert total > dearest
    shifts = sum(screens.top_c_shift(size, 1, scale) for size in range(last, pool + 1))
    assert total <= scale + shifts


@given(pool=st.integers(2, 50), scale=st.floats(0.01, 3), data=st.data())
def test_top_c_grows_with_picks_and_falls_with_the_pool(pool, scale, data):
    picks = data.draw(st.integers(1, pool - 1))
    assert screens.top_c_shift(pool, picks, scale) <= screens.top_c_shift(pool, picks + 1, scale)
    assert screens.top_c_shift(pool + 1, picks, scale) <= screens.top_c_shift(pool, picks, scale)
    assert screens.top_c_epsilon(pool, picks, scale) <= screens.top_c_epsilon(pool, picks, scale * 1.1) + 1e-12


def test_top_c_survives_absurd_scales():
    assert screens.top_c_shift(10, 2, 800.0) == pytest.approx(1600 - math.log(10) - math.log(9), rel=1e-12)


@pytest.mark.parametrize(
    ("pool", "picks", "scale"), [(0, 1, 1.0), (5, 0, 1.0), (5, 6, 1.0), (5, 1, 0.0), (5, 1, math.inf)]
)
def test_top_c_refuses_impossible_batches(pool, picks, scale):
    with pytest.raises(ValueError, match="must be"):
        screens.top_c_epsilon(pool, picks, scale)


@given(rates, losses, st.floats(0, 1e-3), st.booleans())
def test_an_update_within_a_limit_costs_a_stream_all_of_it(pair, limit, delta, visible):
    epsilon, its_delta = screens.update_within(limit, delta, *pair, selection_visible=visible)
    if epsilon <= 0:
        assert visible
        assert screens.screen_losses(*pair)[0] >= limit
        return
    whole = screens.stream_epsilon(*pair, epsilon, selection_visible=visible, adjacency="null")
    # A skip of a visible screen may cost more than a selection with its update.
    assert whole == pytest.approx(max(limit, screens.screen_losses(*pair)[1] if visible else 0), rel=1e-9)
    charged = its_delta if visible else screens.hidden_selection_delta(pair[0], its_delta)
    assert charged == pytest.approx(delta, rel=1e-12)
