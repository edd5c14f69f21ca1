"""The rules of streams: which combinations of fields have a proof, and what a whole stream costs."""

from collections.abc import Mapping
from typing import Any, Final

from annotation.choices.catalogue import chosen_of
from annotation.choices.policies.catalogue import chosen_policy, policy_hides_selection
from annotation.choices.selection_rules import features_of
from annotation.choices.selections import NO_COIN, selection_choice
from privacy.accounting.events_online import BanditOgdEvent, MutualInformationOgdEvent
from privacy.accounting.screens import hidden_selection_delta, screen_losses, stream_epsilon
from privacy.choices import Kind
from privacy.wording import as_message

ONLINE_ESTIMATORS: Final = ("mi_ogd", "bandit_ogd")
BATCH_ESTIMATORS: Final = ("running_sums", "minibatch_svm")
STREAM_ESTIMATORS: Final = (*BATCH_ESTIMATORS, *ONLINE_ESTIMATORS)
# Fields that describe a stream; a pool keeps their defaults.
STREAM_FIELDS: Final = (
    "drop_unselected",
    "update_policy",
    "window_length",
    "window_denominator",
    "window_hours",
    "windows_ahead",
    "updates_per_release",
    "noise_sigma",
    "expected_answers",
    "step_size",
    "weight_radius",
    "average_iterates",
)
# Length to which online learning clips a gradient; its charge is the same in every dimension.
GRADIENT_BOUND: Final = 1.0
# A confirmation loses or wins half a point, whichever class it is about.
CONFIRMATION_LOSS_BOUND: Final = 0.5
# With fewer answers the noise of confirmations leaves little more than chance.
ENOUGH_CONFIRMATIONS: Final = 100_000


def broken_stream_rules(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the rule each field breaks that only streams have, or that a stream breaks; empty where none is.

    Parameters
    ----------
    settings : mapping
        Field names of `Project` (and `pool_epsilon`, `pool_delta`) to values; what is left out has its default.
    """
    if settings.get("arrival", "pool") != "stream":
        return _broken_in_a_pool(settings)
    broken = _broken_shape(settings)
    choice = selection_choice(settings)
    known = choice is not None and "stream" in choice.sound.arrivals
    if known and settings.get("estimator") in STREAM_ESTIMATORS:
        online = settings["estimator"] in ONLINE_ESTIMATORS
        broken |= _broken_online(settings) if online else _broken_batches(settings)
    return broken


def selection_rates(settings: Mapping[str, Any]) -> tuple[float, float]:
    """Return the largest and the smallest selection probability of a stream, as they are charged.

    Raises
    ------
    ValueError
        If the screen's numbers are out of range.
    """
    choice = selection_choice(settings)
    if choice is None:
        raise ValueError(NO_COIN)
    return choice.of(settings).rates()


def batch_stream_epsilon(settings: Mapping[str, Any]) -> float:
    """Return what a stream of noisy batches costs in all, from its rates and the epsilon of one update."""
    q_hi, q_lo = selection_rates(settings)
    visible = not policy_hides_selection(settings)
    return stream_epsilon(q_hi, q_lo, settings["training_epsilon"], selection_visible=visible, adjacency="null")


def online_event(settings: Mapping[str, Any]) -> BanditOgdEvent | MutualInformationOgdEvent:
    """Return what a stream that learns from each answer at once is charged, as far as its settings tell.

    An encoder that is narrower than the wished features makes confirmations cheaper than this says.
    """
    sigma, delta = settings["noise_sigma"], settings["training_delta"]
    if settings["estimator"] == "mi_ogd":
        # The price is the same in every dimension.
        return MutualInformationOgdEvent(1, GRADIENT_BOUND, sigma, delta)
    vectors = 1 if len(settings["classes"]) == 2 else max(1, len(settings["classes"]))
    exploration = settings["weight_radius"] * settings["expected_answers"] ** -0.25
    dimension = vectors * (features_of(settings) + 1)
    return BanditOgdEvent(dimension, CONFIRMATION_LOSS_BOUND, exploration, sigma, delta=delta)


def _broken_in_a_pool(settings: Mapping[str, Any]) -> dict[str, str]:
    broken: dict[str, str] = {}
    policy = chosen_policy(settings)
    if rule := _unknown(Kind.POLICY, settings) if policy is None else policy.sound.broken(settings):
        broken[Kind.POLICY.key] = rule
    if settings.get("screen_shrinks") and not _has_slab(settings):
        broken["screen_shrinks"] = "What is near shrinks with the updates of a stream; a pool has none."
    if settings.get("estimator") in ONLINE_ESTIMATORS:
        broken["estimator"] = "Online learning takes each record once, as it comes: it needs a stream."
    return broken


def _unknown(kind: Kind, settings: Mapping[str, Any]) -> str:
    return as_message("No choice is called {got}.", got=settings.get(kind.key))


def _has_slab(settings: Mapping[str, Any]) -> bool:
    """Say whether what chooses has a slab that updates can make narrower."""
    choice = selection_choice(settings)
    return choice is not None and "screen_shrinks" in {each.name for each in choice.parameters()}


def _broken_shape(settings: Mapping[str, Any]) -> dict[str, str]:
    broken: dict[str, str] = {}
    if settings["oracle"] != "trusted":
        broken["oracle"] = "A gate counts whole uploads, so nothing of a stream could pass it to a crowd."
    if settings["data_kind"] == "image":
        broken["data_kind"] = "A stream takes texts and rows of tables; images come as uploads."
    chosen = {kind: chosen_of(kind, settings) for kind in (Kind.STRATEGY, Kind.ESTIMATOR)}
    for kind, choice in {**chosen, Kind.POLICY: chosen_policy(settings)}.items():
        broken |= {kind.key: _unknown(kind, settings)} if choice is None else choice.broken_by(settings)
    if settings.get("screen_shrinks") and not _has_slab(settings):
        broken["screen_shrinks"] = "Only the screen of two rates has a slab that updates can make narrower."
    if settings.get("overlap", 1) != 1:
        broken["overlap"] = "A record of a stream is answered by one person: its answer feeds one step."
    return broken


def _broken_online(settings: Mapping[str, Any]) -> dict[str, str]:
    broken = _not_positive(settings, "noise_sigma", "weight_radius", "expected_answers")
    policy = chosen_policy(settings)
    if policy is None or not policy.by_answer:
        broken["update_policy"] = "Online learning takes one noisy step for each record: its updates are immediate."
    choice = selection_choice(settings)
    if choice is None or not choice.asks_all:
        broken["selection"] = "The charge of online learning is proved where every record is asked about."
    delta = settings.get("training_delta", 0.0)
    if not 0 < delta < 1:
        broken["training_delta"] = as_message(
            "Must lie between 0 and 1, got {got}: Gaussian noise has an epsilon at a delta.", got=delta
        )
    elif delta >= settings["pool_delta"]:
        # Equal floats are charged upwards and limited downwards, so they do not fit.
        broken["pool_delta"] = as_message(
            "Must be at least a little over {delta:g}, the delta at which the stream is charged.", delta=delta
        )
    if settings["estimator"] == "bandit_ogd" and (settings.get("expected_answers") or 0) < 2:
        broken["expected_answers"] = "Confirmations explore less the more answers are expected: expect at least 2."
    if broken:
        return broken
    whole = online_event(settings).cost().epsilon
    if whole > settings["pool_epsilon"]:
        broken["pool_epsilon"] = as_message(
            "The stream pays once, epsilon {whole:.4g}, more than the limit.", whole=whole
        )
        if settings["estimator"] == "bandit_ogd":
            broken["pool_epsilon"] += " Longer noise, fewer features or classes, and fewer expected answers cost less."
    return broken


def _broken_batches(settings: Mapping[str, Any]) -> dict[str, str]:
    steps = ("step_size", "weight_radius") if settings["estimator"] == "minibatch_svm" else ()
    broken = _not_positive(settings, *steps)
    try:
        selected, skipped = screen_losses(*selection_rates(settings))
        whole = batch_stream_epsilon(settings) if settings["training_epsilon"] > 0 else 0.0
    except ValueError as error:
        return broken | {"selection": as_message("No screen has these numbers: {reason}.", reason=error)}
    policy = chosen_policy(settings)
    known = policy is not None and "stream" in policy.sound.arrivals
    # The priced event may lie under this by a rounding, never far over it.
    if known and whole > settings["pool_epsilon"] * (1 + 1e-9):
        broken["pool_epsilon"] = as_message(
            "The stream pays once, epsilon {whole:.4g}, more than the limit. A skip costs {skipped:.3g}, a "
            "selection {selected:.3g}, an update {training_epsilon:.3g}.",
            whole=whole,
            skipped=skipped,
            selected=selected,
            training_epsilon=settings["training_epsilon"],
        )
    delta = hidden_selection_delta(selection_rates(settings)[0], settings.get("training_delta") or 0.0)
    if policy_hides_selection(settings) and delta > settings["pool_delta"]:
        broken["pool_delta"] = as_message("The stream pays once, delta {delta:.3g}, more than the limit.", delta=delta)
    return broken


def _not_positive(settings: Mapping[str, Any], *fields: str) -> dict[str, str]:
    return {
        field: as_message("Must be above 0, got {got}.", got=settings.get(field))
        for field in fields
        if not (settings.get(field) and settings[field] > 0)
    }
