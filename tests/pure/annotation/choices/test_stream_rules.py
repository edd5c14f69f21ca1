import math

import pytest

from annotation.choices.presets import PRESETS, broken_rules
from annotation.choices.rules import batch_stream_epsilon
from annotation.choices.selections import selection_rates
from tests.streaming import VISIBLE

STREAMS = [preset for preset in PRESETS.values() if preset.defaults.get("arrival") == "stream"]


def shipped(key, **changes):
    preset = PRESETS[key]
    basic = {"oracle": preset.oracle, "data_kind": preset.data_kinds[0], "classes": ["no", "yes"], "columns": []}
    return basic | dict(preset.defaults) | changes


def settings_of(key, **changes):
    own = shipped(key)
    return own | (VISIBLE if own.get("arrival") == "stream" else {}) | changes


@pytest.mark.parametrize("preset", STREAMS, ids=lambda preset: preset.key)
def test_presets_break_no_rule(preset):
    assert len(STREAMS) == 3
    assert broken_rules(shipped(preset.key)) == {}


def test_the_stream_of_experts_spends_all_of_its_limit_and_no_more():
    settings = shipped("fraud-stream")
    assert 1.999 < batch_stream_epsilon(settings) <= settings["pool_epsilon"]
    more = settings | {"training_epsilon": 4.18}
    assert broken_rules(more)["pool_epsilon"].startswith("The stream pays once")
    rate = selection_rates(settings)[0]
    assert 0.99 * settings["pool_delta"] < rate * settings["training_delta"] <= settings["pool_delta"]
    assert "pool_delta" in broken_rules(settings | {"training_delta": 5.1e-5})
    # A visible choice hides nothing of a release, so its delta is the whole of it.
    seen = settings | {"update_policy": "flmb", "window_denominator": None, "training_epsilon": 1.3}
    assert "pool_delta" in broken_rules(seen)
    assert broken_rules(seen | {"training_delta": 4.9e-6}) == {}


@pytest.mark.parametrize(
    ("key", "changes", "field", "words"),
    [
        ("fraud-stream", {"oracle": "crowd", "gate_kind": "k_anonymity"}, "oracle", "gate"),
        ("fraud-stream", {"data_kind": "image"}, "data_kind", "uploads"),
        ("fraud-stream", {"selection": "top_c"}, "selection", "Streams need a screen"),
        ("fraud-stream", {"selection": "secret_sample", "selection_rate": 0.1}, "selection", "Streams need a screen"),
        ("fraud-stream", {"estimator": "logistic"}, "estimator", "reads all labels again"),
        ("fraud-stream", {"overlap": 3}, "overlap", "one person"),
        ("fraud-stream", {"update_policy": "per_round"}, "update_policy", "pool"),
        ("fraud-stream", {"window_length": None}, "window_length", "Is missing."),
        ("fraud-stream", {"window_denominator": 20}, "window_denominator", "the time of a batch"),
        ("fraud-stream", {"update_policy": "flsw_hidden"}, "window_denominator", "public number"),
        (
            "fraud-stream",
            {"update_policy": "flsw_hidden", "window_denominator": 20, "labels_limit": 100},
            "labels_limit",
            "reveal",
        ),
        ("fraud-stream", {"screen_high": 0.05, "screen_low": 0.1}, "selection", "rate"),
        ("fraud-stream", {"screen_high": 1.0}, "selection", "below 1"),
        ("fraud-stream", {"screen_high": 0.5}, "pool_epsilon", "pays once"),
        ("fraud-stream", {"training_epsilon": 2.0}, "pool_epsilon", "pays once"),
        ("fraud-stream", {"windows_ahead": 0}, "windows_ahead", "at least 1"),
        ("full-information-ogd", {"training_delta": 0.0}, "training_delta", "above 0"),
        ("full-information-ogd", {"pool_delta": 1e-7}, "pool_delta", "more than the limit"),
        ("pool-experts", {"selection": "bernoulli_screen"}, "selection", "for streams"),
        ("pool-experts", {"update_policy": "flmb"}, "update_policy", "stream"),
        ("pool-experts", {"selection": "all"}, "selection", "stream"),
        ("pool-experts", {"estimator": "running_sums"}, "estimator", "stream"),
        ("pool-experts", {"question_kind": "confirm"}, "question_kind", "stream"),
    ],
)
def test_what_has_no_proof_is_refused_by_its_rule(key, changes, field, words):
    broken = broken_rules(settings_of(key, **changes))
    assert words in broken[field]


def test_a_hidden_stream_costs_what_the_null_formula_says():
    settings = settings_of("fraud-stream", update_policy="flsw_hidden", window_denominator=25)
    q_hi, _ = selection_rates(settings)
    assert batch_stream_epsilon(settings) == pytest.approx(math.log1p(q_hi * math.expm1(1.3)), rel=1e-12)
    assert batch_stream_epsilon(settings | {"update_policy": "flmb"}) == pytest.approx(math.log(2) + 1.3, rel=1e-12)
