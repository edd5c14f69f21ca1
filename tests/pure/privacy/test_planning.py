import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting.cost import Cost
from privacy.accounting.gate import RATES, frontier, gate_delta
from privacy.gate import survey as survey_module
from privacy.gate.kanonymity import KAnonymityGate, ThresholdGate
from privacy.gate.planning import PublicSource, passing, plan_source, said_at_least
from privacy.gate.survey import Frequencies, PoolSurvey
from privacy.mechanisms.randomness import SimulationRandom

KEY = bytes(range(32))


def log(rng, rows, texts=3000, people=500):
    numbers = np.minimum(rng.zipf(1.3, size=rows), texts)
    return pa.RecordBatch.from_pydict(
        {
            "text": [f"text {number}" for number in numbers.tolist()],
            "contributor": [f"p{number}" for number in rng.integers(0, people, size=rows).tolist()],
        }
    )


@pytest.mark.parametrize("cap", [1, 4])
def test_frontier_holds_the_cost_and_nothing_beaten(cap):
    choices = frontier(1.0, 1e-6, texts_per_contributor=cap, rates=RATES[4::5])
    assert len(choices) > 10
    for choice, smaller in zip(choices[1:], choices, strict=False):
        assert (choice.k, choice.sampling_rate) > (smaller.k, smaller.sampling_rate)
        assert choice.sampling_rate > smaller.sampling_rate
        assert gate_delta(choice.k, choice.sampling_rate, choice.epsilon) <= 1e-6 / cap
        assert gate_delta(choice.k - 1, choice.sampling_rate, choice.epsilon) > 1e-6 / cap
        cost = KAnonymityGate(choice.k, choice.sampling_rate, "contributor", cap).event(choice.epsilon).cost()
        assert max(choice.epsilon, 0.9) <= cost.epsilon <= 1.0
        assert cost.delta <= 1e-6 * (1 + 1e-8)


def needed(choice):
    return choice.k / choice.sampling_rate


def test_a_cap_makes_the_gate_dearer():
    planned = [frontier(1.0, 1e-6, texts_per_contributor=cap, rates=RATES[4::5]) for cap in (1, 5)]
    by_rate = [{choice.sampling_rate: choice.k for choice in choices} for choices in planned]
    shared = by_rate[0].keys() & by_rate[1].keys()
    assert shared
    assert all(by_rate[1][rate] >= by_rate[0][rate] for rate in shared)
    assert min(needed(choice) for choice in planned[1]) > min(needed(choice) for choice in planned[0])
    with pytest.raises(ValueError, match="got 0"):
        frontier(1.0, 1e-6, texts_per_contributor=0)


@given(counts=st.lists(st.integers(1, 200), min_size=1, max_size=20), k=st.integers(2, 30), rate=st.floats(0.01, 0.99))
def test_chance_of_enough_coins(counts, k, rate):
    gate = KAnonymityGate(k, rate)
    chances = gate.chances(np.array(counts))
    for count, chance in zip(counts, chances.tolist(), strict=True):
        masses = [1.0]
        for _ in range(count):
            masses = np.convolve(masses, [1 - gate.exact_sampling_rate, gate.exact_sampling_rate])
        assert chance == pytest.approx(float(np.sum(masses[k:])), abs=1e-9)


@pytest.mark.parametrize("noise", ["discrete_laplace", "truncated_geometric", "weighted_gaussian"])
@pytest.mark.parametrize("floor", [1, 6])
def test_expected_texts_are_what_the_threshold_gate_lets_out(noise, floor):
    """Seeded, 5 standard deviations at most of the number of texts; half the epsilon is told apart."""
    counts = np.arange(1, 41).repeat(100)
    texts = [f"text {row}" for row, count in enumerate(counts.tolist()) for _ in range(count)]
    batch = pa.RecordBatch.from_pydict({"text": texts})
    gate = ThresholdGate(0.8, 1e-4, noise=noise, floor=floor)
    let_out = gate.release([batch], rng=SimulationRandom(5)).num_rows
    chances = gate.chances(counts)
    spread = 5 * np.sqrt((chances * (1 - chances)).sum())
    assert abs(let_out - chances.sum()) < spread
    half = ThresholdGate(0.4, 1e-4, noise=noise, floor=floor).chances(counts)
    assert abs(let_out - half.sum()) > spread


def test_expected_texts_are_what_the_sampled_gate_lets_out():
    batch = log(np.random.default_rng(1), 100_000)
    survey = PoolSurvey(key=KEY)
    survey.update([batch])
    gate = KAnonymityGate(8, 0.3)
    expected = passing(survey.frequencies(), gate)
    released = gate.release([batch], key=KEY)
    assert abs(released.num_rows - expected.texts) < 5 * np.sqrt(expected.texts)
    assert expected.text_share == pytest.approx(expected.texts / len(set(batch["text"].to_pylist())))
    assert expected.contribution_share == pytest.approx(sum(released["sample_count"].to_pylist()) / 30_000, abs=0.02)


@given(
    records=st.lists(st.tuples(st.sampled_from("abc "), st.sampled_from("xyz")), max_size=40),
    cap=st.none() | st.integers(3, 5),
    cut=st.integers(0, 40),
)
def test_a_small_pool_is_counted_exactly(records, cap, cut):
    survey = PoolSurvey(key=KEY, unit="contributor" if cap else "record", texts_per_contributor=cap)
    for part in (records[:cut], records[cut:]):
        columns = {"text": [text for text, _ in part], "contributor": [person for _, person in part]}
        survey.update(
            [pa.RecordBatch.from_pydict(columns, schema=pa.schema({"text": "string", "contributor": "string"}))]
        )
    found = survey.frequencies()
    named = [record for record in records if record[0] != " "]
    counts = Counter(text for text, _ in (set(named) if cap else named))
    assert dict(zip(found.counts.tolist(), found.texts.tolist(), strict=True)) == Counter(counts.values())
    assert (found.distinct_texts, found.contributions) == (len(counts), sum(counts.values()))


def test_cap_holds_over_batches():
    """Ann's 30 texts in three batches count four times, Bob's one text once."""
    survey = PoolSurvey(key=KEY, unit="contributor", texts_per_contributor=4)
    for start in (0, 10, 20):
        texts = [f"text {number}" for number in range(start, start + 10)]
        survey.update([pa.RecordBatch.from_pydict({"text": [*texts, "x"], "contributor": ["ann"] * 10 + ["bob"]})])
    found = survey.frequencies()
    assert found.contributions == 5
    assert found.mean_weight == pytest.approx((2 + 1) / 5)


def test_a_large_pool_is_estimated_closely(monkeypatch):
    """Sketch and sample instead of a table: the share of records and texts that pass stays within 3 % and 10 %."""
    monkeypatch.setattr(survey_module, "SAMPLED_RECORDS", 2**14)
    rng = np.random.default_rng(2)
    batches = [log(rng, 50_000, texts=20_000) for _ in range(6)]
    exact, sketched = PoolSurvey(key=KEY), PoolSurvey(key=KEY, exact_texts=1000, rng=SimulationRandom(4))
    for survey in (exact, sketched):
        survey.update(batches)
    assert (exact.frequencies().exact, sketched.frequencies().exact) == (True, False)
    for gate in (KAnonymityGate(10, 0.25), ThresholdGate(1.0, 1e-6)):
        truth, guess = (passing(survey.frequencies(), gate) for survey in (exact, sketched))
        assert guess.contribution_share == pytest.approx(truth.contribution_share, rel=0.03)
        assert guess.texts == pytest.approx(truth.texts, rel=0.1)
        assert guess.text_share == pytest.approx(truth.text_share, rel=0.1)


@pytest.mark.parametrize(
    ("k", "texts", "share", "records"), [(1, 150, 1.0, 1.0), (2, 50, 1 / 3, 250 / 251), (501, 0, 0, 0)]
)
def test_said_at_least_counts_without_sampling_or_noise(k, texts, share, records):
    rich = Frequencies(np.array([1, 500]), np.array([100.0, 50.0]), 150, 25_100)
    (row,) = said_at_least(rich, [k])
    assert (row.k, row.texts) == (k, texts)
    assert row.text_share == pytest.approx(share)
    assert row.contribution_share == pytest.approx(records)


@given(different=st.integers(2, 20_000), most=st.integers(2, 5000), share=st.floats(0.001, 0.999))
def test_frequencies_have_the_public_numbers(different, most, share):
    fewest, most_records = different + most - 1, different * most
    source = PublicSource(fewest + int(share * (most_records - fewest)), different, most)
    found = source.frequencies()
    assert found.counts.max() == most
    assert found.texts.sum() == pytest.approx(different)
    assert (found.counts >= 1).all()
    # Counts are rounded down to whole numbers, by less than one a text.
    assert source.records - different - 1 <= found.contributions <= source.records * (1 + 1e-6) + 1


def test_what_is_forecast_is_what_comes_out():
    """Seeded: the gates' own output on records drawn up from the law, 5 standard deviations around the forecast."""
    source = PublicSource(60_000, 8_000, 900)
    plan = plan_source(source, epsilon=1.0, delta=1e-5)
    law = source.frequencies()
    counts = np.repeat(law.counts, law.texts.astype(int))
    texts = np.repeat([f"text {place}" for place in range(len(counts))], counts)
    batches = [pa.RecordBatch.from_pydict({"text": pa.array(texts, pa.large_string())})]
    (sampled_gate, by_sampling), (threshold_gate, by_threshold) = plan.gates
    sampled = sampled_gate.release(batches, key=b"0123456789abcdef").num_rows
    noisy = threshold_gate.release(batches, rng=SimulationRandom(5)).num_rows
    assert abs(sampled - by_sampling.texts) < 5 * math.sqrt(by_sampling.texts)
    assert abs(noisy - by_threshold.texts) < 5 * math.sqrt(by_threshold.texts)
    assert by_threshold.texts > by_sampling.texts > 20


def price(gate, *, cap):
    """Return what a planned gate costs at (1, 1e-5)."""
    if isinstance(gate, ThresholdGate):
        return gate.event().cost()
    choices = frontier(1.0, 1e-5, texts_per_contributor=cap, rates=RATES if cap == 1 else RATES[4::5])
    planned = (gate.k, gate.sampling_rate)
    (loss,) = [choice.epsilon for choice in choices if (choice.k, choice.sampling_rate) == planned]
    return gate.event(loss).cost()


def test_both_gates_cost_what_was_given():
    plan = plan_source(
        PublicSource(60_000, 8_000, 900), epsilon=1.0, delta=1e-5, unit="contributor", texts_per_contributor=2
    )
    sampled, threshold = (price(gate, cap=2) for gate, _ in plan.gates)
    assert isinstance(sampled, Cost)
    assert 0.9 < sampled.epsilon <= 1.0
    assert 1 - 1e-9 < threshold.epsilon <= 1.0
    assert sampled.delta <= 1e-5 * (1 + 1e-6)
    assert threshold.delta <= 1e-5 * (1 + 1e-6)


def test_texts_that_do_not_repeat_pass_no_gate_and_general_ones_do():
    natural = plan_source(PublicSource(22_500, 22_400, 3), epsilon=1.0, delta=1e-6)
    general = plan_source(PublicSource(22_500, 13_170, 667), epsilon=1.0, delta=1e-6)
    assert sum(passed.texts for _, passed in natural.gates) < 1
    assert not natural.enough
    assert natural.window > 8
    (_, (_, by_threshold)) = general.gates
    assert by_threshold.texts > 50
    assert 1 <= general.window < natural.window


def test_a_longer_window_is_long_enough_and_not_longer():
    source = PublicSource(20_000, 9_000, 400)
    plan = plan_source(source, epsilon=1.0, delta=1e-6, wanted=400)
    assert 1 < plan.window < 20
    longer = PublicSource(math.ceil(20_000 * plan.window * 1.02), 9_000, math.ceil(400 * plan.window * 1.02))
    assert plan_source(longer, epsilon=1.0, delta=1e-6, wanted=390).enough
    assert plan_source(PublicSource(30, 30, 1), epsilon=1.0, delta=1e-6, wanted=31).window == math.inf


@pytest.mark.parametrize(
    "numbers", [(0, 1, 1), (10, 11, 1), (10, 2, 3), (10, 1, 9), (10, 5, 7), (10, 0, 3), (10, 5, 0)]
)
def test_numbers_of_no_source_are_refused(numbers):
    with pytest.raises(ValueError, match=r"impossible source|must be"):
        PublicSource(*numbers)
