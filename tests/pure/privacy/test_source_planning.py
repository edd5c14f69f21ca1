import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting.cost import Cost
from privacy.accounting.gate import RATES, frontier
from privacy.gate.kanonymity import ThresholdGate
from privacy.gate.planning import PublicSource, plan_source
from privacy.mechanisms.randomness import SimulationRandom


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
