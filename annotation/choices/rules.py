"""Rules between the settings of selection, training and streams."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

from annotation.choices.catalogue import CATALOGUE, chosen_of, parameter_names
from annotation.choices.label_types.learning import LearnsLabels, chosen_estimator, training_delta, training_epsilon
from annotation.choices.policies import chosen_policy, policy_hides_selection
from annotation.choices.selections import asks_in_secret, selection_choice, selection_rates
from privacy.accounting.screens import hidden_selection_delta, screen_losses, stream_epsilon
from privacy.choices import BrokenRules, Choice, Kind
from privacy.wording import as_message, in_english

# Parameters of selections that presets say, so that no default stands for them.
OF_PRESETS = ("selection_epsilon", "selection_rate", "block_hours")
# Parameters of models and features that a client may leave out, too.
LEFT_OUT: Final = ("image_colours",)
USUAL_ESTIMATOR: Final = "logistic"
# Of noise that needs none.
NO_DELTA: Final = 0.0


def field_defaults() -> dict[str, Any]:
    """Return what a pool's settings are where its configuration leaves them out or its choices do not use them."""
    # Of the parameters of selections that no preset says, every project has the declared default.
    free = {*parameter_names(Kind.STRATEGY), *LEFT_OUT} - {*OF_PRESETS}
    declared = {name: each.default for name, each in CATALOGUE.parameters().items() if name in free}
    return {**declared, Kind.ESTIMATOR.key: USUAL_ESTIMATOR, "training_delta": NO_DELTA}


def broken_selection_rules(settings: Mapping[str, Any]) -> dict[str, str]:
    selection = settings["selection"]
    choice = chosen_of(Kind.STRATEGY, settings)
    if choice is None:
        return {"selection": in_english("No choice is called {got}.", got=selection)}
    broken = choice.broken_by(settings)
    if settings["oracle"] != "crowd" and settings.get("repeat_votes"):
        broken["repeat_votes"] = "Needs a gate."
    return broken


def broken_estimator_rules(settings: Mapping[str, Any]) -> dict[str, str]:
    choice = chosen_of(Kind.ESTIMATOR, {Kind.ESTIMATOR.key: USUAL_ESTIMATOR, **settings})
    if choice is None:
        rule = as_message("A release needs a model that adds noise.")
        return {"estimator": rule}
    broken = choice.broken_by(settings)
    delta = settings.get("training_delta") or NO_DELTA
    if delta != NO_DELTA and "training_delta" not in {each.name for each in choice.parameters()}:
        broken["training_delta"] = as_message(
            "Only Gaussian noise has a delta, so it must be 0 here, got {got}.", got=delta
        )
    return broken


TEXT_COLUMNS: Final = "text_columns"


def features_of(settings: Mapping[str, Any]) -> int:
    if settings["data_kind"] == "table":
        columns = settings.get("columns") or []
        return sum(len(column["categories"]) + 1 if "categories" in column else 1 for column in columns)
    # Texts that go through a table of vectors keep some of its columns.
    choice = chosen_of(Kind.FEATURES, settings) if settings["data_kind"] == "text" else None
    for kept in () if choice is None else choice.parameters():
        if kept.name == TEXT_COLUMNS:
            return int(settings.get(TEXT_COLUMNS, kept.default))
    return int(settings["feature_dimension"])


def broken_stream_rules(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the rule each field breaks that only streams have, or that a stream breaks; empty where none is."""
    if settings.get("arrival", "pool") != "stream":
        policy = chosen_policy(settings)
        return {Kind.POLICY.key: _unknown(Kind.POLICY, settings)} if policy is None else policy.broken_by(settings)
    broken = _broken_shape(settings)
    choice = selection_choice(settings)
    known = choice is not None and "stream" in choice.sound.arrivals
    trained = chosen_estimator(settings)
    if known and trained is not None and "stream" in trained.sound.arrivals:
        broken |= _broken_batches(settings, trained)
    return broken


def batch_stream_epsilon(settings: Mapping[str, Any]) -> float:
    q_hi, q_lo = selection_rates(settings)
    visible = not policy_hides_selection(settings)
    return stream_epsilon(q_hi, q_lo, update_epsilon(settings), selection_visible=visible, adjacency="null")


def update_epsilon(settings: Mapping[str, Any]) -> float:
    epsilon = training_epsilon(settings)
    if epsilon is None:
        raise ValueError(as_message("this model has no price of its own"))
    return epsilon


def _unknown(kind: Kind, settings: Mapping[str, Any]) -> str:
    return in_english("No choice is called {got}.", got=settings.get(kind.key))


def _broken_shape(settings: Mapping[str, Any]) -> dict[str, str]:
    broken: dict[str, str] = {}
    if settings["oracle"] != "trusted":
        broken["oracle"] = "A gate counts whole uploads, so a crowd needs a pool."
    if settings["data_kind"] == "image":
        broken["data_kind"] = "A stream takes texts and rows of tables; images come as uploads."
    trained, policy = chosen_of(Kind.ESTIMATOR, settings), chosen_policy(settings)
    # What a choice says of itself comes after what the estimator says of all three.
    chosen = {Kind.ESTIMATOR: trained, Kind.POLICY: policy, Kind.STRATEGY: selection_choice(settings)}
    for kind, choice in chosen.items():
        broken |= {kind.key: _unknown(kind, settings)} if choice is None else choice.broken_by(settings)
    if settings.get("overlap", 1) != 1:
        broken["overlap"] = "A record of a stream is answered by one person."
    return broken


def _broken_batches(settings: Mapping[str, Any], trained: type[LearnsLabels]) -> dict[str, str]:
    try:
        rates = selection_rates(settings)
        selected, skipped = screen_losses(*rates)
    except ValueError as error:
        return {"selection": in_english("No screen has these numbers: {reason}.", reason=error)}
    try:
        trained.of(settings)
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
            training_epsilon=update_epsilon(settings),
        )
    delta = hidden_selection_delta(rates[0], training_delta(settings))
    if policy_hides_selection(settings) and delta > settings["pool_delta"]:
        broken["pool_delta"] = as_message("The stream pays once, delta {delta:.3g}, more than the limit.", delta=delta)
    return broken


@runtime_checkable
class ReadsLanguages(Protocol):
    """Features that know languages other than English, by code."""

    languages: ClassVar[Collection[str]]


def features_for(language: str) -> type[Choice] | None:
    """Return the features that know a language other than English, also where the site lacks what they need."""
    found = CATALOGUE.of_kind(Kind.FEATURES)
    return next((each for each in found if isinstance(each, ReadsLanguages) and language in each.languages), None)


# Whoever stops at one of these leaves one record unanswered because of another.
BINDING_LIMITS: Final = ("answers_per_person", "answers_per_day", "encounter_limit")


def hides_selection(settings: Mapping[str, Any]) -> bool:
    """Say whether ids, numbers and times of what is asked stay among those who see the records."""
    return asks_in_secret(settings) or policy_hides_selection(settings)
