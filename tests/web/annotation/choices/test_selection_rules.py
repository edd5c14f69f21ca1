"""The rules know the project's choices and defaults, and every combination without a proof has its refusal."""

import pytest

from annotation.choices import rules
from annotation.choices.catalogue import CATALOGUE, offered, parameter_names
from annotation.choices.planned_settings import planned_settings
from annotation.choices.presets import PRESETS, broken_rules
from annotation.models import Project
from privacy.choices import ARRIVALS, Kind

CLASSES = {"classes": ["a", "b"]}


def settings_of(preset: str, **changes):
    chosen = PRESETS[preset]
    return {**chosen.defaults, "oracle": chosen.oracle, "data_kind": "text", **CLASSES, **changes}


def planned_of(preset: str, **changes):
    settings = settings_of(preset, **changes)
    return settings | planned_settings(settings) | changes


def test_the_rules_know_the_fields_and_what_they_default_to():
    # What a strategy alone reads is declared there and nowhere else.
    known = {field.name: field.default for field in Project._meta.concrete_fields} | Project.absent
    defaults = rules.field_defaults()
    assert {name: known[name] for name in defaults.keys() & known.keys()} == {
        name: default for name, default in defaults.items() if name in known
    }
    assert defaults.keys() - known.keys() <= set(parameter_names(Kind.STRATEGY))
    assert "screen_high" in defaults.keys() - known.keys()
    convex = {"logistic", "logistic_output"}
    without_delta = {
        each.name
        for each in CATALOGUE.of_kind(Kind.ESTIMATOR)
        if "trusted" in each.sound.oracles and "training_delta" not in {declared.name for declared in each.parameters()}
    }
    assert without_delta == convex
    estimators = {each.name: each for each in CATALOGUE.of_kind(Kind.ESTIMATOR)}
    assert {*estimators} >= convex
    assert all("pool" in estimators[name].sound.arrivals for name in convex)


def test_a_policy_is_offered_where_its_declaration_says():
    around = {"oracle": "trusted", "data_kinds": ["text"]}
    listed = {where: [name for name, _ in offered(Kind.POLICY, arrival=where, **around)] for where in ARRIVALS}
    assert listed["stream"] == ["flsw_hidden", "flmb"]
    assert listed["pool"] == ["per_round"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"selection": "bernoulli_screen"}, "selection"),
        ({"selection": "top_c", "selection_epsilon": 0.0}, "selection_epsilon"),
        ({"repeat_votes": True}, "repeat_votes"),
        ({"estimator": "logistic_baseline"}, "estimator"),
        ({"estimator": "running_sums", "training_delta": 1e-6}, "estimator"),
        ({"estimator": "softmax_steps", "training_delta": 0.0}, "training_delta"),
        ({"estimator": "logistic", "training_delta": 1e-6}, "training_delta"),
        ({"estimator": "logistic", "training_delta": 0.0, "regularization": 0.0}, "regularization"),
        ({"selection": "random", "training_delta": 1e-5}, "pool_delta"),
    ],
)
def test_a_combination_without_a_proof_names_its_field(changes, field):
    assert field in broken_rules(settings_of("pool-experts", **changes))


@pytest.mark.parametrize(
    "changes", [{"selection": "bernoulli_screen"}, {"estimator": "softmax_steps", "training_delta": 1e-6}]
)
def test_what_reads_records_or_has_a_delta_is_nothing_for_a_crowd(changes):
    assert broken_rules(settings_of("voice-crowd", **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"selection": "top_c"},
        {"selection": "random", "estimator": "logistic", "training_delta": 0.0},
        {"estimator": "logistic_output", "training_delta": 0.0},
    ],
)
def test_every_choice_of_a_pool_with_experts_opens_with_its_defaults(changes):
    assert broken_rules(planned_of("pool-experts", **changes)) == {}
