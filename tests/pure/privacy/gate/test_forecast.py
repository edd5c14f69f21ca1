import numpy as np
import pyarrow as pa
import pytest

from privacy.gate import KAnonymityGate, ThresholdGate
from privacy.gate.forecast import GateForecast
from privacy.mechanisms.randomness import SimulationRandom

RUNS = 200
GATES = {
    "sampled records": KAnonymityGate(6, 0.3),
    "noisy records": ThresholdGate(1.0, 1e-3, floor=2),
    "sampled people": KAnonymityGate(6, 0.3, "contributor", 2),
    "noisy people": ThresholdGate(1.0, 1e-3, "contributor", 2, "truncated_geometric", 2),
    "weighed people": ThresholdGate(1.0, 1e-3, "contributor", 2, "weighted_gaussian", 2),
}


def log(*, cap_binds: bool) -> pa.RecordBatch:
    """Return 60 texts of which each is said by some more people; with a cap that binds, people say five each."""
    rng = np.random.default_rng(5)
    texts = np.repeat([f"text {place}" for place in range(60)], np.arange(60))
    people = rng.integers(len(texts) // 5, size=len(texts)) if cap_binds else np.arange(len(texts))
    return pa.record_batch({"text": pa.array(texts), "contributor": pa.array([f"{one}".encode() for one in people])})


def passed(gate, batch: pa.RecordBatch, rng) -> int:
    key = rng.generator.bytes(32)
    return gate.decide(gate.read([batch], key=key), key=key, rng=rng).num_rows


@pytest.mark.parametrize("cap_binds", [False, True])
@pytest.mark.parametrize("name", GATES)
def test_the_mean_and_the_interval_are_those_of_the_gate(name: str, cap_binds: bool) -> None:
    """Seeded, so no false alarm; a mean one text off is refused, as is an interval much wider than the numbers."""
    gate, batch, rng = GATES[name], log(cap_binds=cap_binds), SimulationRandom(3)
    forecast = GateForecast(gate, rng=rng)
    for start in range(0, batch.num_rows, 500):
        forecast.add(batch.slice(start, 500))
    found = forecast.passing()
    numbers = np.array([passed(gate, batch, rng) for _ in range(RUNS)])
    assert 5 < found.expected < 55
    error = numbers.std() / np.sqrt(RUNS)
    assert abs(numbers.mean() - found.expected) < 3 * error + 0.25 * cap_binds
    assert abs(numbers.mean() - (found.expected + 1)) > 3 * error + 0.25 * cap_binds
    assert ((numbers >= found.low) & (numbers <= found.high)).mean() >= 0.93
    assert found.high - found.low < 5 * numbers.std() + 2


def test_unlike_texts_pass_nowhere_and_uploads_together_count_as_often():
    alone = GateForecast(KAnonymityGate(2, 0.5))
    alone.add(pa.record_batch({"text": [f"review {place}" for place in range(4600)]}))
    assert (alone.passing().expected, alone.passing().high) == (0, 0)
    week = GateForecast(KAnonymityGate(2, 0.5), uploads=7)
    week.add(pa.record_batch({"text": ["play jazz", "Play jazz!"]}))
    assert week.passing().expected == pytest.approx(1 - 15 / 2**14)
    assert GateForecast(KAnonymityGate(2, 0.5)).passing().expected == 0
