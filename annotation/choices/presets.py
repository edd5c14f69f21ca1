"""Consistent starting configurations, and the rules that refuse a combination without a proof."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from annotation.choices.catalogue import CATALOGUE, chosen_of, offered
from annotation.choices.gates import ChargedByText, first_event, gate_choice, gate_choices
from annotation.choices.label_types.learning import not_learned
from annotation.choices.randomizers import answers_unit
from annotation.choices.rules import broken_estimator_rules, broken_selection_rules, broken_stream_rules
from dpal.reading.labels import class_key
from privacy.choices import Kind
from privacy.json_values import beyond_bounds
from privacy.wording import as_message, in_english


@dataclass(frozen=True, slots=True)
class Preset:
    key: str
    title: str
    sentence: str
    oracle: str
    data_kinds: tuple[str, ...]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    cost: str = ""
    # Which answers a release is made of.
    made_of: str = ""


# Batches of answers join the sums of all before them.
_SUMS: dict[str, Any] = {
    "arrival": "stream",
    "privacy_unit": "record",
    "window_hours": 24,
    "windows_ahead": 4,
    "updates_per_release": 4,
    "estimator": "running_sums",
    "moment_share": 0.05,
    "updates_per_epoch": 64,
    "round_size": 50,
    "labels_per_release": 50,
    "overlap": 1,
    "feature_dimension": 32,
    "features": "planned",
    "text_columns": 128,
    "regularization": 1.0,
    "pool_epsilon": 2.0,
    "pool_delta": 5e-6,
}
# And every record is asked about.
_EVERY_RECORD: dict[str, Any] = {
    **_SUMS,
    "selection": "all",
    "selection_epsilon": 0.0,
    "update_policy": "flmb",
    "window_length": 50,
    # All of the limit, `planned_settings` of these settings.
    "training_epsilon": 1.999,
    "training_delta": 4.999e-6,
}

STREAM_PRESETS = (
    Preset(
        key="fraud-stream",
        title="Fraud stream to experts",
        sentence=("Records arrive one by one; a noisy screen decides once for each whether an expert is asked."),
        cost="Epsilon 2.00 and delta 5e-6 once, for any number of records and releases.",
        made_of="Each release uses all answers so far.",
        oracle="trusted",
        data_kinds=("table", "text"),
        defaults={
            **_SUMS,
            "selection": "bernoulli_screen",
            "selection_epsilon": 0.0,
            "screen_high": 0.1,
            "screen_low": 0.05,
            "screen_reach": 0.1,
            "drop_unselected": True,
            "update_policy": "flsw_hidden",
            "window_length": 500,
            "window_denominator": 50,
            # ln(1 + 0.1 (e^4.172 - 1)) and a tenth of the delta: all of the limit.
            "training_epsilon": 4.172,
            "training_delta": 4.999e-5,
        },
    ),
    Preset(
        key="full-information-ogd",
        title="Online learning from full answers",
        sentence=(
            "Your experts answer every record posted; every 50 answers make a new model. Others see models "
            "and the times of questions."
        ),
        cost="Epsilon 2.00 and delta 5e-6 once, for any number of records and releases.",
        made_of="Each release uses all answers so far.",
        oracle="trusted",
        data_kinds=("text", "table"),
        defaults=_EVERY_RECORD,
    ),
    Preset(
        key="confirm-or-reject",
        title="Confirm or reject the model's guess",
        sentence=(
            "Your experts confirm or reject the model's guess for every record posted. Others see models and "
            "the times of questions."
        ),
        cost="Epsilon 2.00 and delta 5e-6 once, for any number of records and releases.",
        made_of="Each release uses all answers so far.",
        oracle="trusted",
        data_kinds=("text", "table"),
        defaults={**_EVERY_RECORD, "question_kind": "confirm"},
    ),
)


MOST_CLASSES = 1000
# Kinds whose rules stand in the choice alone.
OTHER_KINDS = (
    Kind.RANDOMIZER,
    Kind.CLASSES,
    Kind.SUGGESTIONS,
    Kind.MACHINE,
    Kind.LABEL_TYPE,
    Kind.RELEASES,
    Kind.STREAM,
    Kind.LABELLING,
    Kind.BUDGET,
)
LONGEST_CLASS = 200

PRESETS: dict[str, Preset] = {
    preset.key: preset
    for preset in (
        Preset(
            key="voice-crowd",
            title="Voice queries to a crowd",
            sentence=(
                "Strangers see a text only if its noisy count of contributors is high enough. Contributors "
                "are protected from annotators and anyone with a model."
            ),
            cost=(
                "An upload costs epsilon 1 at delta 7.8e-6, for contributors of two texts at most; all answers cost "
                "epsilon 4 once."
            ),
            made_of="Each release uses all answers so far.",
            oracle="crowd",
            data_kinds=("text",),
            defaults={
                "privacy_unit": "contributor",
                "gate_kind": "threshold",
                "gate_k": 20,
                "gate_sampling_rate": 0.25,
                "gate_epsilon": 1.0,
                "gate_delta": 7.8e-6,
                "gate_floor": 2,
                "texts_per_contributor": 2,
                "normalizer": "L1",
                "selection": "clustered_uncertainty",
                "uncertainty_measure": "entropy",
                "repeat_votes": False,
                "selection_epsilon": 0.0,
                # Training again is free, and what is asked next is the better for it.
                "round_size": 20,
                "labels_per_release": 20,
                "overlap": 3,
                "feature_dimension": 64,
                "features": "static_encoder",
                "text_columns": 256,
                "label_randomizer": "randomized_consensus",
                "answers_epsilon": 4.0,
                "answers_unit": "answer",
                "response_classes": "top_k",
                "randomizations": 1,
                "estimator": "channel",
                "training_epsilon": 2.0,
                "regularization": 1.0,
                "pool_epsilon": 3.0,
                "pool_delta": 3e-5,
                "labels_epsilon": 4.0,
            },
        ),
        Preset(
            key="pool-experts",
            title="Pool, expert labels",
            sentence=("Your experts see and annotate the records. Everyone else sees only released models."),
            cost=(
                "Two secret random blocks of 10 and 70 % of the pool, each giving one model, cost epsilon 0.59 + 1.41 "
                "and delta 5e-6."
            ),
            made_of=("Each release is trained on its own block; with sums, on all blocks so far."),
            oracle="trusted",
            data_kinds=("text", "table", "image"),
            defaults={
                "privacy_unit": "record",
                "selection": "secret_sample",
                "selection_rate": 0.1,
                "block_hours": 168,
                "selection_epsilon": 0.25,
                "round_size": 40,
                "labels_per_release": 40,
                "overlap": 1,
                "feature_dimension": 64,
                "features": "planned",
                "text_columns": 128,
                "estimator": "planned",
                # All of the limit, `planned_settings` of these settings.
                "training_epsilon": 2.195,
                "training_delta": 6.249e-6,
                "regularization": 3.0,
                "pool_epsilon": 2.0,
                "pool_delta": 5e-6,
            },
        ),
        *STREAM_PRESETS,
    )
}


def fitting_estimator(preset: Preset, settings: Mapping[str, Any]) -> str:
    """Return the chosen estimator, or the first offered one that learns from such answers where it does not."""
    standing: dict[str, Any] = {**preset.defaults, "oracle": preset.oracle, **settings}
    arrival = str(standing.get("arrival", "pool"))
    found = offered(Kind.ESTIMATOR, oracle=preset.oracle, arrival=arrival, data_kinds=preset.data_kinds)
    names: list[str] = [standing["estimator"], preset.defaults["estimator"], *(name for name, _label in found)]
    return next((name for name in names if not not_learned({**standing, "estimator": name})), names[0])


def broken_rules(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the rule each field breaks, empty when the combination has a proof."""
    broken = broken_stream_rules(settings)
    if "oracle" in broken:
        return broken
    crowd = settings["oracle"] == "crowd"
    if crowd and settings["data_kind"] != "text":
        broken["data_kind"] = "Crowd projects take texts only."
    if not crowd and settings["privacy_unit"] == "contributor":
        broken["privacy_unit"] = "Selection and training are proved for single records, not for contributors."
    broken |= _broken_feature_rules(settings) | broken_other_rules(settings)
    if settings.get("arrival", "pool") == "pool":
        broken |= broken_selection_rules(settings) | broken_estimator_rules(settings)
    if not settings["pool_epsilon"] > 0:
        broken["pool_epsilon"] = as_message(
            "Must be above {bound:g}, got {got}.", bound=0, got=settings["pool_epsilon"]
        )
    if not 0 <= settings["pool_delta"] < 1:
        broken["pool_delta"] = beyond_bounds(settings["pool_delta"], decimals=0, at_least=0, below=1)
    if crowd:
        broken |= _broken_gate_rules(settings)
    classes = settings["classes"]
    if not 2 <= len(classes) <= MOST_CLASSES or len(set(map(class_key, classes))) != len(classes):
        broken["classes"] = "Name 2 to 1,000 different classes."
    elif not all(class_key(name) and len(name) <= LONGEST_CLASS for name in classes):
        broken["classes"] = as_message("A class has a name of at most {longest} letters.", longest=LONGEST_CLASS)
    return broken


def _broken_feature_rules(settings: Mapping[str, Any]) -> dict[str, str]:
    choice = chosen_of(Kind.FEATURES, {"features": "standard", **settings})
    if choice is None:
        return {"features": in_english("No choice is called {got}.", got=settings["features"])}
    return choice.broken_by(settings)


def broken_other_rules(settings: Mapping[str, Any]) -> dict[str, str]:
    broken: dict[str, str] = {}
    for choice in CATALOGUE.chosen(settings):
        if choice.kind in OTHER_KINDS:
            broken |= choice.broken_by(settings)
    return broken


def epsilon_of_kind(preset: Preset, settings: Mapping[str, Any]) -> float:
    gates, cap = gate_choices(), 1.0
    if settings["privacy_unit"] == "contributor":
        cap = float(settings.get("texts_per_contributor") or 1)
    price = float(preset.defaults["gate_epsilon"])
    whole = price * cap if isinstance(gates[preset.defaults["gate_kind"]], ChargedByText) else price
    gate = gates.get(settings["gate_kind"])
    return whole / cap if isinstance(gate, ChargedByText) else whole


def _broken_gate_rules(settings: Mapping[str, Any]) -> dict[str, str]:
    gates, kind = gate_choices(), settings["gate_kind"]
    gate = gates.get(kind)
    if gate is not None:
        broken = gate.broken_by(settings)
    else:
        broken = {"gate_kind": as_message("Must be one of {possible}, got {got}.", possible=", ".join(gates), got=kind)}
    if settings["privacy_unit"] not in ("record", "contributor"):
        broken["privacy_unit"] = in_english("Must be record or contributor, got {got}.", got=settings["privacy_unit"])
    if settings["privacy_unit"] == "contributor" and not settings["texts_per_contributor"]:
        broken["texts_per_contributor"] = "Every further text of a person costs more, so a cap is needed."
    if answers_unit(settings) is not None and not (settings.get("labels_epsilon") or 0) > 0:
        broken["labels_epsilon"] = as_message(
            "Must be above {bound:g}, got {got}.", bound=0, got=settings.get("labels_epsilon") or 0
        )
    if not settings["pool_delta"] > 0:
        broken["pool_delta"] = as_message("Must be above {bound:g}, got {got}.", bound=0, got=settings["pool_delta"])
    return broken or _unpayable_gate(settings)


def _unpayable_gate(settings: Mapping[str, Any]) -> dict[str, str]:
    try:
        gate = gate_choice(settings)
        cost = first_event(settings).cost()
    except ValueError as error:
        return {"gate_epsilon": as_message("No such gate: {reason}.", reason=error)}
    broken: dict[str, str] = {}
    if cost.epsilon > settings["pool_epsilon"]:
        broken["pool_epsilon"] = as_message(
            "An upload through this gate costs epsilon {epsilon:g}, more than the limit.", epsilon=cost.epsilon
        )
    return broken if cost.delta <= settings["pool_delta"] else broken | dict(gate.unpayable(cost.delta, settings))
