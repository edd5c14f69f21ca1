import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from privacy.accounting.composition import gaussian_epsilon
from privacy.accounting.cost import Cost, NoProof
from privacy.accounting.events import GaussianEvent, MinibatchSgdEvent, SecretBlockEvent, SecretSeriesEvent
from privacy.accounting.screens import hidden_selection_epsilon
from privacy.accounting.series import even_training, mixture_epsilon


def test_the_whole_series_costs_less_than_its_blocks_one_by_one():
    """Four blocks of a tenth, a tenth, a fifth and two fifths that cost 2 in all one by one cost about 1.3."""
    rates = (0.1, 0.1, 0.2, 0.4)
    wanted = (0.30, 0.30, 0.53, 0.87)
    inner = tuple(math.log1p(math.expm1(cost) / rate) for cost, rate in zip(wanted, rates, strict=True))
    alone = sum(hidden_selection_epsilon(rate, epsilon) for rate, epsilon in zip(rates, inner, strict=True))
    assert alone == pytest.approx(2.0)
    assert SecretSeriesEvent(rates, inner, (0.0,) * 4).cost().epsilon == pytest.approx(1.33, abs=0.01)


@given(rate=st.floats(0.01, 1), epsilon=st.floats(0.01, 8), adjacency=st.sampled_from(["null", "replace"]))
def test_one_block_is_a_secret_sample(rate, epsilon, adjacency):
    cost = SecretSeriesEvent((rate,), (epsilon,), (0.0,)).cost(adjacency=adjacency)
    assert cost.epsilon == pytest.approx(hidden_selection_epsilon(rate, epsilon, adjacency), rel=1e-9)


@settings(max_examples=200)
@given(
    data=st.lists(
        st.tuples(st.floats(0.01, 0.3), st.floats(0.05, 3), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=3
    )
)
def test_randomised_response_in_each_block_never_leaks_more(data):
    """Each block says one bit by a channel within its epsilon; all outcomes of the whole series are counted out."""
    rates = np.array([block[0] for block in data])
    price = SecretSeriesEvent(tuple(rates), tuple(block[1] for block in data), (0.0,) * len(data)).cost().epsilon
    channels = []
    for _, epsilon, low, mix in data:
        quiet = 0.02 + 0.96 * low
        loud = min(quiet * math.exp(epsilon), 1 - (1 - quiet) * math.exp(-epsilon))
        soft = max(quiet * math.exp(-epsilon), 1 - (1 - quiet) * math.exp(epsilon))
        channels.append((quiet, mix * loud + (1 - mix) * soft))
    for outcome in np.ndindex(*(2,) * len(data)):
        quiet = [q if bit else 1 - q for bit, (q, _) in zip(outcome, channels, strict=True)]
        spoken = [s if bit else 1 - s for bit, (_, s) in zip(outcome, channels, strict=True)]
        ratio = 1 - rates.sum() + sum(rate * s / q for rate, s, q in zip(rates, spoken, quiet, strict=True))
        assert abs(math.log(ratio)) <= price * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("sigma", [0.6, 1.0, 2.0])
@pytest.mark.parametrize("rates", [(0.2, 0.3), (0.5, 0.5)])
def test_gaussian_blocks_by_numerical_integration(sigma, rates):
    """Two blocks with Gaussian noise: mass above e^eps on a fine plane, either way round, is at most delta."""
    inner_delta = 1e-3
    epsilon = gaussian_epsilon(1 / sigma, inner_delta)
    cost = SecretSeriesEvent(rates, (epsilon, epsilon), (inner_delta, inner_delta)).cost()
    points = np.linspace(-9 * sigma, 9 * sigma + 1, 1_501)
    step = points[1] - points[0]
    without, with_ = norm.pdf(points, 0, sigma) * step, norm.pdf(points, 1, sigma) * step
    q = np.outer(without, without)
    p = (1 - sum(rates)) * q + rates[0] * np.outer(with_, without) + rates[1] * np.outer(without, with_)
    for one, other in ((p, q), (q, p)):
        beyond = np.maximum(one - math.exp(cost.epsilon) * other, 0).sum()
        assert beyond <= cost.delta * (1 + 1e-3)


@pytest.mark.parametrize(
    "wrong",
    [
        ((0.6, 0.6), (1.0, 1.0), (0.0, 0.0)),
        ((0.5,), (1.0, 1.0), (0.0,)),
        ((), (), ()),
        ((0.0,), (1.0,), (0.0,)),
        ((0.5,), (0.0,), (0.0,)),
        ((0.5,), (1.0,), (1.0,)),
    ],
)
def test_series_that_are_none_are_refused(wrong):
    with pytest.raises(ValueError):
        SecretSeriesEvent(*wrong)


INNER = MinibatchSgdEvent(1.0, 3)
RATES = (0.1, 0.1, 0.2, 0.4)


def releases(series, blocks, inner=INNER):
    attempts, found = (0,) * len(series.rates), []
    for block in blocks:
        found.append(SecretBlockEvent(series, inner, block, attempts))
        attempts = found[-1].counted
    return found


def within(epsilon):
    return MinibatchSgdEvent(1 / epsilon * (1 + 1e-9), 3)


@given(
    epsilon=st.floats(0.1, 5),
    delta=st.sampled_from([0.0, 1e-6]),
    rates=st.lists(st.floats(0.01, 0.25), min_size=1, max_size=4),
)
def test_releases_of_a_series_add_up_to_its_price(epsilon, delta, rates):
    series = SecretSeriesEvent(tuple(rates), (epsilon,) * len(rates), (delta,) * len(rates))
    costs = [event.cost() for event in releases(series, range(1, len(rates) + 1), within(epsilon))]
    whole = series.cost()
    assert whole.epsilon * (1 - 1e-12) <= math.fsum(cost.epsilon for cost in costs) <= whole.epsilon * (1 + 1e-9)
    assert [cost.delta for cost in costs] == pytest.approx([whole.delta] + [0.0] * (len(rates) - 1), abs=1e-16)
    # The first one costs what a secret sample alone costs, each later one less than that.
    alone = [hidden_selection_epsilon(rate, epsilon) for rate in rates]
    assert costs[0].epsilon == pytest.approx(alone[0], rel=1e-9)
    assert all(cost.epsilon <= single * (1 + 1e-9) for cost, single in zip(costs, alone, strict=True))


def test_blocks_that_were_left_out_are_not_paid_for():
    series = SecretSeriesEvent(RATES, (1.0,) * 4, (0.0,) * 4)
    found = math.fsum(event.cost().epsilon for event in releases(series, [2, 4]))
    assert found == pytest.approx(math.log1p(0.5 * math.expm1(1.0)), rel=1e-9)


def test_a_block_tried_twice_pays_for_both():
    series = SecretSeriesEvent(RATES, (1.0,) * 4, (1e-6,) * 4)
    costs = [event.cost() for event in releases(series, [1, 2, 2, 3])]
    together = math.log1p(0.2 * math.expm1(1.0) + 0.1 * math.expm1(2.0) + 0.1 * math.expm1(1.0))
    assert math.fsum(cost.epsilon for cost in costs) == pytest.approx(together, rel=1e-9)
    twice = SecretSeriesEvent(RATES, (1.0, 2.0, 1.0, 1.0), (1e-6, 2e-6, 1e-6, 1e-6))
    assert math.fsum(cost.delta for cost in costs) == pytest.approx(twice.cost().delta, rel=1e-9)


def test_an_epsilon_far_beyond_use_has_a_price_all_the_same():
    series = SecretSeriesEvent((0.2, 0.2), (400.0, 400.0), (0.0, 0.0))
    costs = [event.cost().epsilon for event in releases(series, [1, 1, 2])]
    assert math.fsum(costs) == pytest.approx(800 + math.log(0.2), rel=1e-9)


def test_what_continues_no_series_is_refused():
    series = SecretSeriesEvent(RATES, (1.0,) * 4, (0.0,) * 4)
    first, second = releases(series, [1, 2])
    first.check_parent(None)
    second.check_parent(first)
    other = releases(SecretSeriesEvent(RATES, (1.1,) * 4, (0.0,) * 4), [1])[0]
    for parent, said in ((other, "of the same series"), (second, "count every release"), (None, "must name the entry")):
        with pytest.raises(ValueError, match=said):
            second.check_parent(parent)
    # More releases than there were make the next one cheaper, fewer leave one unpaid.
    for attempts, parent in (((1, 0, 0, 0), second), ((6, 0, 0, 0), first), ((1, 0, 0, 1), first)):
        with pytest.raises(ValueError, match="count every release"):
            SecretBlockEvent(series, INNER, 2, attempts).check_parent(parent)
    for inner in (MinibatchSgdEvent(0.9, 3), GaussianEvent(1.0, 9.0, delta=1e-6)):
        with pytest.raises(ValueError, match="was given epsilon 1 and delta 0"):
            SecretBlockEvent(series, inner, 1, (0,) * 4)
    for wrong in ((INNER, 5, (0,) * 4), (INNER, 1, (0,) * 3), (INNER, 1, (-1, 0, 0, 0)), (first, 1, (0,) * 4)):
        with pytest.raises(ValueError):
            SecretBlockEvent(series, *wrong)
    with pytest.raises(NoProof):
        first.cost(adjacency="replace")
    assert first.cost().rho == math.inf


def test_the_next_release_of_a_series_is_within_what_its_blocks_were_given():
    opened = SecretBlockEvent.next_of(None, INNER, block=1, rates=RATES)
    assert opened.series == SecretSeriesEvent(RATES, (1.0,) * 4, (0.0,) * 4)
    following = SecretBlockEvent.next_of(opened, MinibatchSgdEvent(2.0, 3), block=2, rates=RATES)
    assert (following.series, following.attempts) == (opened.series, (1, 0, 0, 0))
    assert SecretBlockEvent.next_of(opened, MinibatchSgdEvent(0.5, 3), block=2, rates=RATES) is None


@settings(max_examples=200)
@given(
    data=st.lists(st.tuples(st.floats(0.01, 0.3), st.floats(0.05, 3), st.floats(0, 1)), min_size=3, max_size=3),
    stop=st.lists(st.booleans(), min_size=2, max_size=2),
)
def test_a_series_that_stops_by_what_it_saw_has_paid_for_every_outcome(data, stop):
    """Whether the next block releases depends on the bit before; each path costs what its own releases cost."""
    rates, epsilons = tuple(block[0] for block in data), tuple(block[1] for block in data)
    quiet = [0.02 + 0.96 * low for _, _, low in data]
    loud = [min(q * math.exp(e), 1 - (1 - q) * math.exp(-e)) for q, e in zip(quiet, epsilons, strict=True)]
    prices = releases(SecretSeriesEvent(rates, epsilons, (0.0,) * 3), (1, 2, 3), within(min(epsilons)))
    paths = {()}
    for place in range(3):
        ended = {path for path in paths if len(path) < place or (place and path[-1] == stop[place - 1])}
        paths = ended | {(*path, bit) for path in paths - ended for bit in (0, 1)}
    for path in paths:
        price = math.fsum(event.cost().epsilon for event in prices[: len(path)])
        ratios = [s / q if bit else (1 - s) / (1 - q) for bit, q, s in zip(path, quiet, loud, strict=False)]
        ratio = 1 + sum(rate * (found - 1) for rate, found in zip(rates, ratios, strict=False))
        assert abs(math.log(ratio)) <= price * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("as_series", [True, False])
def test_a_limit_that_no_exponential_holds_is_divided_as_well(as_series):
    rates = (0.1, 0.1, 0.2, 0.4)
    below, _missed = even_training(699.0, 0.0, rates, releases=4, as_series=as_series)
    above, _missed = even_training(4000.0, 0.0, rates, releases=4, as_series=as_series)
    if as_series:
        # Beyond, each pays as much more as the limit is larger.
        assert above - below == pytest.approx(4000.0 - 699.0)
    paid = mixture_epsilon(rates, [above] * 4) if as_series else sum(mixture_epsilon([rate], [above]) for rate in rates)
    assert 0.999 * 4000.0 < paid <= 4000.0 * (1 + 1e-12)


@given(
    epsilon=st.floats(0.05, 6),
    delta=st.sampled_from([0.0, 1e-8, 1e-5]),
    rates=st.lists(st.floats(0.01, 0.25), min_size=1, max_size=4),
    releases=st.integers(1, 6),
)
def test_even_trainings_spend_the_limit_over_the_blocks_that_release(epsilon, delta, rates, releases):
    each, missed = even_training(epsilon, delta, rates, releases=releases)
    paying = rates[:releases]
    assert math.log1p(sum(rate * math.expm1(each) for rate in paying)) == pytest.approx(epsilon, rel=1e-9)
    assert sum(rate * missed for rate in rates) == pytest.approx(delta, rel=1e-9)
    # A twin that planned as if one more small block released would not.
    assert math.log1p((sum(paying) + 0.01) * math.expm1(each)) > epsilon * (1 + 1e-6)


@given(epsilon=st.floats(0.05, 6), rates=st.lists(st.floats(0.01, 0.25), min_size=1, max_size=4))
def test_blocks_that_pay_one_by_one_add_up_to_the_limit(epsilon, rates):
    each, missed = even_training(epsilon, 1e-6, rates, releases=len(rates), as_series=False)
    assert sum(hidden_selection_epsilon(rate, each, "null") for rate in rates) == pytest.approx(epsilon, rel=1e-6)
    assert sum(rates) * missed == pytest.approx(1e-6)
    assert each <= even_training(epsilon, 1e-6, rates, releases=len(rates))[0] * (1 + 1e-9)


def one_records_laws(rates, epsilon, delta):
    """Return the law of all outputs with a record of exclusive coins and without it; each block tells a bit of it.

    A block says with chance `delta` for certain whether the record is in it. `epsilon` is of all blocks or of each.
    """

    def outputs(block):
        law = np.ones(1)
        for each, own in enumerate(np.broadcast_to(epsilon, len(rates))):
            odds = 1 / (1 + math.exp(-own if each == block else own))
            certain = [delta, 0.0] if each == block else [0.0, delta]
            law = np.outer(law, [(1 - delta) * odds, (1 - delta) * (1 - odds), *certain]).ravel()
        return law

    without = outputs(None)
    mixed = (1 - sum(rates)) * without + sum(rate * outputs(block) for block, rate in enumerate(rates))
    return mixed, without


@pytest.mark.parametrize("people", [1, 2])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05])
@pytest.mark.parametrize(
    ("rates", "epsilon"),
    [
        ((0.5, 0.5), 1.0),
        ((0.25,) * 4, 2.0),
        ((0.2, 0.6), 4.0),
        ((0.1,), 6.0),
        ((0.1, 0.3), (1.0, 4.0)),
        ((0.2,) * 2, (0.5, 3.0)),
    ],
)
def test_blocks_that_pay_one_by_one_cover_a_group(rates, epsilon, delta, people):
    """Against all outputs of a person's records; a twin that forgets half of the blocks pays too little."""
    if people * len(rates) > 4:
        rates = rates[:2]
    epsilons = np.broadcast_to(epsilon, len(rates))
    one, none = one_records_laws(rates, epsilon, delta)
    law, other = one, none
    if people == 2:
        law, other = np.outer(one, one).ravel(), np.outer(none, none).ravel()
    blocks = [
        Cost(math.log1p(rate * math.expm1(each)), rate * delta).of_group(people)
        for rate, each in sorted(zip(rates, epsilons, strict=True))
    ]

    def enough(paid):
        total, missed = sum(cost.epsilon for cost in paid), sum(cost.delta for cost in paid)
        factor = math.exp(total)
        worst = max(np.maximum(law - factor * other, 0).sum(), np.maximum(other - factor * law, 0).sum())
        return worst <= missed * (1 + 1e-9) + 1e-12

    assert enough(blocks)
    assert not enough(blocks[: len(blocks) // 2])


@pytest.mark.parametrize(
    ("rates", "epsilon"), [((0.5, 0.5), 1.0), ((0.25,) * 4, 2.0), ((0.2, 0.6), 4.0), ((0.3,) * 3, 8.0)]
)
def test_their_rhos_add_up_to_no_less_than_the_whole(rates, epsilon):
    one, none = one_records_laws(rates, epsilon, 0.0)
    one, none = one[none > 0], none[none > 0]
    rho = sum(math.log1p(rate * math.expm1(epsilon)) ** 2 / 2 for rate in rates)
    for first, second in ((one, none), (none, one)):
        for order in (1.001, 1.5, 2.0, 4.0, 16.0, 64.0):
            divergence = math.log(second @ (first / second) ** order) / (order - 1)
            assert divergence <= order * rho


@pytest.mark.parametrize(
    "wrong",
    [(0.0, 0.0, (0.1,), 1), (1.0, 1.0, (0.1,), 1), (1.0, 0.0, (), 1), (1.0, 0.0, (0.1,), 0), (1.0, 0.0, (0.0,), 1)],
)
def test_limits_that_cannot_be_divided_are_refused(wrong):
    epsilon, delta, rates, releases = wrong
    with pytest.raises(ValueError):
        even_training(epsilon, delta, rates, releases=releases)
