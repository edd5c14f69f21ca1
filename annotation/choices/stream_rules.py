"""Rules and price of a whole stream."""

from collections.abc import Mapping
from typing import Any

from annotation.choices.catalogue import chosen_of
from annotation.choices.label_types.learning import LearnsLabels, chosen_estimator
from annotation.choices.policies.catalogue import chosen_policy, policy_hides_selection
from annotation.choices.selections import NO_COIN, selection_choice
from privacy.accounting.screens import hidden_selection_delta, screen_losses, stream_epsilon
from privacy.choices import BrokenRules, Kind
from privacy.wording import as_message


def broken_stream_rules(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the rule each field breaks that only streams have, or that a stream breaks; empty where none is."""
    if settings.get("arrival", "pool") != "stream":
        return _broken_in_a_pool(settings)
    broken = _broken_shape(settings)
    choice = selection_choice(settings)
    known = choice is not None and "stream" in choice.sound.arrivals
    trained = chosen_estimator(settings)
    if known and trained is not None and "stream" in trained.sound.arrivals:
        broken |= _broken_batches(settings, trained)
    return broken


def selection_rates(settings: Mapping[str, Any]) -> tuple[float, float]:
    """Return the largest and the smallest selection probability of a stream, as they are charged."""
    choice = selection_choice(settings)
    if choice is None:
        raise ValueError(NO_COIN)
    return choice.of(settings).rates()


def batch_stream_epsilon(settings: Mapping[str, Any]) -> float:
    q_hi, q_lo = selection_rates(settings)
    visible = not policy_hides_selection(settings)
    return stream_epsilon(q_hi, q_lo, update_epsilon(settings), selection_visible=visible, adjacency="null")


def update_epsilon(settings: Mapping[str, Any]) -> float:
    """Return what one update of a stream of noisy batches is meant to cost."""
    trained = chosen_estimator(settings)
    epsilon = None if trained is None else trained.of(settings).epsilon
    if epsilon is None:
        raise ValueError(as_message("this model has no price of its own"))
    return epsilon


def _broken_in_a_pool(settings: Mapping[str, Any]) -> dict[str, str]:
    policy = chosen_policy(settings)
    return {Kind.POLICY.key: _unknown(Kind.POLICY, settings)} if policy is None else policy.broken_by(settings)


def _unknown(kind: Kind, settings: Mapping[str, Any]) -> str:
    return as_message("No choice is called {got}.", got=settings.get(kind.key))


def _broken_shape(settings: Mapping[str, Any]) -> dict[str, str]:
    broken: dict[str, str] = {}
    if settings["oracle"] != "trusted":
        broken["oracle"] = "A gate counts whole uploads, so nothing of a stream could pass it to a crowd."
    if settings["data_kind"] == "image":
        broken["data_kind"] = "A stream takes texts and rows of tables; images come as uploads."
    trained, policy = chosen_of(Kind.ESTIMATOR, settings), chosen_policy(settings)
    # What a choice says of itself comes after what the estimator says of all three.
    chosen = {Kind.ESTIMATOR: trained, Kind.POLICY: policy, Kind.STRATEGY: selection_choice(settings)}
    for kind, choice in chosen.items():
        broken |= {kind.key: _unknown(kind, settings)} if choice is None else choice.broken_by(settings)
    if settings.get("overlap", 1) != 1:
        broken["overlap"] = "A record of a stream is answered by one person: its answer feeds one step."
    return broken


def _broken_batches(settings: Mapping[str, Any], trained: type[LearnsLabels]) -> dict[str, str]:
    try:
        rates = selection_rates(settings)
        selected, skipped = screen_losses(*rates)
    except ValueError as error:
        return {"selection": as_message("No screen has these numbers: {reason}.", reason=error)}
    try:
        update = trained.of(settings)
    except BrokenRules:
        # Told beside each number already.
        return {}
    policy = chosen_policy(settings)
    known = policy is not None and "stream" in policy.sound.arrivals
    broken: dict[str, str] = {}
    # The priced event may lie under this by a rounding, never far over it.
    if known and (whole := batch_stream_epsilon(settings)) > settings["pool_epsilon"] * (1 + 1e-9):
        broken["pool_epsilon"] = as_message(
            "The stream pays once, epsilon {whole:.4g}, more than the limit. A skip costs {skipped:.3g}, a "
            "selection {selected:.3g}, an update {training_epsilon:.3g}.",
            whole=whole,
            skipped=skipped,
            selected=selected,
            training_epsilon=update.epsilon,
        )
    delta = hidden_selection_delta(rates[0], update.delta)
    if policy_hides_selection(settings) and delta > settings["pool_delta"]:
        broken["pool_delta"] = as_message("The stream pays once, delta {delta:.3g}, more than the limit.", delta=delta)
    return broken
