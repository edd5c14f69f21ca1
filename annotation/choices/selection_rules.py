"""Rules between the settings of selection and training."""

from collections.abc import Mapping
from typing import Any, Final

from annotation.choices.catalogue import CATALOGUE, chosen_of, parameter_names
from privacy.choices import Kind
from privacy.wording import as_message

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
    """Return the rules about the choice of questions that a configuration of a pool breaks, by field."""
    selection = settings["selection"]
    choice = chosen_of(Kind.STRATEGY, settings)
    if choice is None:
        return {"selection": as_message("No selection is called {got}.", got=selection)}
    broken = choice.broken_by(settings)
    if settings["oracle"] != "crowd" and settings.get("repeat_votes"):
        broken["repeat_votes"] = "Asking again about doubtful answers is free only behind a gate."
    return broken


def broken_estimator_rules(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the rules about training that a configuration of a pool breaks, by field."""
    choice = chosen_of(Kind.ESTIMATOR, {Kind.ESTIMATOR.key: USUAL_ESTIMATOR, **settings})
    if choice is None:
        rule = as_message("A release needs an estimator that adds noise; its twins without noise are no choice.")
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
    kept = _text_columns(settings)
    if kept is not None:
        return kept
    if settings["data_kind"] != "table":
        return int(settings["feature_dimension"])
    columns = settings.get("columns") or []
    return sum(len(column["categories"]) + 1 if "categories" in column else 1 for column in columns)


def _text_columns(settings: Mapping[str, Any]) -> int | None:
    """Return the columns that are kept of a table of vectors for texts; None where records do not go through one."""
    choice = chosen_of(Kind.FEATURES, settings) if settings["data_kind"] == "text" else None
    declared = () if choice is None else choice.parameters()
    return next((int(settings.get(TEXT_COLUMNS, kept.default)) for kept in declared if kept.name == TEXT_COLUMNS), None)
