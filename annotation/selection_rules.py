"""What each selection and each estimator needs, and the rule that a configuration breaks."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from privacy.accounting.events import Event, ExponentialScreenEvent, ExposureCappedScreenEvent
from privacy.wording import say

RATE_SCREENS = ("exposure_capped_screen", "bernoulli_screen", "version_space_screen")
SCREENS = (*RATE_SCREENS, "exponential_screen")
POOL_ESTIMATORS = (
    "logistic",
    "logistic_gaussian",
    "logistic_output",
    "huber_svm",
    "huber_svm_gaussian",
    "huber_svm_output",
    "minibatch_svm",
)
GAUSSIAN = ("logistic_gaussian", "huber_svm_gaussian")
MOST_EXPOSURES = 255
# Features and intercept together: above this nearly every record cuts the cone of hypotheses.
LARGEST_VERSION_SPACE = 20
# Every featuriser clips to this.
NORM_BOUND = 1.0
# What a project has where its configuration leaves a field out.
FIELD_DEFAULTS: Mapping[str, Any] = {
    "uncertainty_measure": "entropy",
    "repeat_votes": False,
    "screen_high": 0.1,
    "screen_low": 0.05,
    "screen_reach": 0.1,
    "exponential_threshold": 0.5,
    "half_angle": 0.2,
    "exposures": 3,
    "screened_blocks": False,
    "estimator": "logistic",
    "smoothing": 0.5,
    "training_delta": 0.0,
}


def value_of(settings: Mapping[str, Any], name: str) -> Any:
    """Return a setting, or the default of the project's field where it is left out."""
    value = settings.get(name)
    return FIELD_DEFAULTS[name] if value is None else value


def deep_installed() -> bool:
    """Say whether the extra `deep` is installed, without loading it."""
    return find_spec("torch") is not None


def broken_selection_rules(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the rules about the choice of questions that a configuration of a pool breaks, by field."""
    selection, crowd = settings["selection"], settings["oracle"] == "crowd"
    broken: dict[str, str] = {}
    if crowd and selection == "top_c":
        broken["selection"] = "Private top-c reads records; a crowd project ranks what the gate let through."
    if crowd and selection in SCREENS:
        broken["selection"] = "A screen reads records; a crowd project ranks what the gate let through."
    if not crowd and selection == "uncertainty":
        broken["selection"] = (
            "Ranking records without noise reveals them; choose a secret sample, private top-c or random choice."
        )
    if value_of(settings, "uncertainty_measure") == "mc_dropout" and not deep_installed():
        broken["uncertainty_measure"] = "MC dropout is not installed on this site: it needs the extra “deep”."
    if not crowd and value_of(settings, "repeat_votes"):
        broken["repeat_votes"] = "Asking again about doubtful answers is free only behind a gate."
    if selection == "secret_sample":
        broken |= _broken_sample_rules(settings)
    elif value_of(settings, "screened_blocks"):
        broken["screened_blocks"] = "Only a secret sample has blocks to screen."
    if selection == "top_c" and not settings["selection_epsilon"] > 0:
        broken["selection_epsilon"] = say(
            "Must be above 0 for private top-c, got {got}.",
            got=settings["selection_epsilon"],
        )
    if selection in SCREENS and not crowd:
        broken |= _broken_screen_rules(settings) or _unpayable_screen(settings)
    return broken


def broken_estimator_rules(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the rules about training that a configuration of a pool breaks, by field."""
    estimator, delta = value_of(settings, "estimator"), value_of(settings, "training_delta")
    broken: dict[str, str] = {}
    if estimator in ("mi_ogd", "bandit_ogd"):
        broken["estimator"] = "Online gradient descent takes the records of a stream, one after another."
    elif estimator not in POOL_ESTIMATORS:
        broken["estimator"] = "A release needs an estimator that adds noise; its twins without noise are no choice."
    if estimator in GAUSSIAN and not 0 < delta < 1:
        broken["training_delta"] = say("Gaussian noise has a delta; it must lie between 0 and 1, got {got}.", got=delta)
    if estimator not in GAUSSIAN and delta != 0:
        broken["training_delta"] = say("Only Gaussian noise has a delta, so it must be 0 here, got {got}.", got=delta)
    if estimator.startswith("huber_svm") and not (0.125 <= value_of(settings, "smoothing") <= 8):
        broken["smoothing"] = say(
            "Must lie between 0.125 and 8, got {got}: the plain hinge has no curvature bound.",
            got=value_of(settings, "smoothing"),
        )
    if estimator == "minibatch_svm" and settings["selection"] == "secret_sample":
        broken["estimator"] = (
            "Batches are cut from a list of public length, and how many a secret sample holds is secret; train by "
            "objective or output perturbation."
        )
    paying = "labels_epsilon" if settings["oracle"] == "crowd" else "pool_delta"
    if estimator in GAUSSIAN and paying == "labels_epsilon":
        broken["estimator"] = "The account of the answers has no delta, and Gaussian noise needs one."
    elif estimator in GAUSSIAN and delta > settings["pool_delta"] and not _samples(settings):
        broken["pool_delta"] = say("One release costs delta {delta:g}, more than the limit.", delta=delta)
    return broken


def screen_series_event(settings: Mapping[str, Any]) -> Event:
    """Return what opens a series of screening rounds: it pays for all looks at every record."""
    if settings["selection"] == "exponential_screen":
        event = ExponentialScreenEvent(
            value_of(settings, "exponential_threshold"), NORM_BOUND, settings["selection_epsilon"]
        )
        return ExposureCappedScreenEvent(*event.rates, exposures=1)
    looks = value_of(settings, "exposures") if settings["selection"] == "exposure_capped_screen" else 1
    return ExposureCappedScreenEvent(
        value_of(settings, "screen_high"), value_of(settings, "screen_low"), exposures=looks
    )


def _samples(settings: Mapping[str, Any]) -> bool:
    return bool(settings["selection"] == "secret_sample")


def _broken_sample_rules(settings: Mapping[str, Any]) -> dict[str, str]:
    broken: dict[str, str] = {}
    if settings["oracle"] == "crowd":
        broken["selection"] = "A crowd sees what is asked, so nothing about the choice is secret from it."
    rate = settings.get("selection_rate")
    if not rate or not 0 < rate < 1:
        broken["selection_rate"] = say("Must lie between 0 and 1, got {got}.", got=rate)
    hours = settings.get("block_hours", 1)
    if not hours or hours < 1:
        broken["block_hours"] = say("Must be at least 1, got {got}.", got=hours)
    if settings.get("labels_limit") is not None or settings.get("money_limit") is not None:
        broken["labels_limit"] = "How many a secret sample asks is secret, and stopping at a limit would tell it."
    return broken | _broken_reach(settings)


def _broken_screen_rules(settings: Mapping[str, Any]) -> dict[str, str]:
    if settings["selection"] == "exponential_screen":
        return _broken_exponential_rules(settings)
    broken = _broken_reach(settings)
    high, low = value_of(settings, "screen_high"), value_of(settings, "screen_low")
    if not 0 < high < 1:
        broken["screen_high"] = say(
            "Must lie between 0 and 1, got {got}: a certain answer gives a record away.", got=high
        )
    if not 0 < low <= high:
        broken["screen_low"] = say("Must be above 0 and at most the rate near the boundary, got {got}.", got=low)
    if not 1 <= value_of(settings, "exposures") <= MOST_EXPOSURES:
        broken["exposures"] = say("Must be 1 to {most}: every look at a record costs.", most=MOST_EXPOSURES)
    if settings["selection"] == "version_space_screen":
        if not 0 < value_of(settings, "half_angle") < 1.57:
            broken["half_angle"] = say("Must lie between 0 and 1.57, got {got}.", got=value_of(settings, "half_angle"))
        if features_of(settings) >= LARGEST_VERSION_SPACE:
            broken["feature_dimension"] = say(
                "A version space is told apart in up to {most} features, got {got}: "
                "above, nearly every record is undecided.",
                most=LARGEST_VERSION_SPACE - 1,
                got=features_of(settings),
            )
    return broken


def _broken_exponential_rules(settings: Mapping[str, Any]) -> dict[str, str]:
    broken: dict[str, str] = {}
    threshold = value_of(settings, "exponential_threshold")
    if not 0 < threshold < NORM_BOUND:
        broken["exponential_threshold"] = say(
            "Must lie between 0 and {bound:g}, the norm bound, got {got}: at 0 a skip tells everything.",
            bound=NORM_BOUND,
            got=threshold,
        )
    if not 0 < settings["selection_epsilon"] <= 10:
        broken["selection_epsilon"] = say(
            "Must lie between 0 and 10 here, got {got}.", got=settings["selection_epsilon"]
        )
    return broken


def _broken_reach(settings: Mapping[str, Any]) -> dict[str, str]:
    reach = value_of(settings, "screen_reach")
    return {} if 0 <= reach <= 10 else {"screen_reach": say("Must lie between 0 and 10, got {got}.", got=reach)}


def _unpayable_screen(settings: Mapping[str, Any]) -> dict[str, str]:
    """Refuse a screen whose looks the pool could not pay for even once."""
    cost = screen_series_event(settings).cost()
    if cost.epsilon <= settings["pool_epsilon"]:
        return {}
    return {
        "pool_epsilon": say(
            "The looks of this screen cost epsilon {epsilon:.3g}, more than the limit.", epsilon=cost.epsilon
        )
    }


def features_of(settings: Mapping[str, Any]) -> int:
    """Return the number of features: of a table, one for each number, and for each category and all others."""
    if settings["data_kind"] != "table":
        return int(settings["feature_dimension"])
    columns = settings.get("columns") or []
    return sum(len(column["categories"]) + 1 if "categories" in column else 1 for column in columns)
