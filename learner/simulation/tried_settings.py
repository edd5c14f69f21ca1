"""Which other settings a plan tries: the model, how many columns, the blocks, and how epsilon is divided."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from annotation.choices.catalogue import CATALOGUE, chosen_of, declaration_of
from annotation.choices.planned_settings import rounded_down
from annotation.choices.randomizers import Varied, chosen_randomizer, randomizes
from annotation.choices.selection_rules import TEXT_COLUMNS
from learner.estimators.choice import ConvexChoice, EstimatorChoice
from learner.estimators.planned import stands_for
from learner.features.static_encoder import MOST_COLUMNS
from learner.simulation.setup import Setup, series_epsilon, simulated_strategy, strategy_choice
from learner.strategies.base import StrategyChoice
from privacy.choices import Kind, missing_for
from privacy.wording import as_message

# Of more classes than this, estimators that divide epsilon over the classes are known to lose, and take long.
MOST_DIVIDED_CLASSES: Final = 10
RELEASES: Final = (1, 2, 4)

Changes = dict[str, Any]


def untried(settings: Mapping[str, Any]) -> str:
    """Say why a project of such settings has no others to try, empty where it has some."""
    if settings["oracle"] == "crowd" and not randomizes(settings):
        return as_message(
            "No other settings are tried: behind a gate that is done only where all answers are paid for at once."
        )
    return ""


def left_out(settings: Mapping[str, Any]) -> str:
    """Say which models are not tried, empty where all that are sound are."""
    if settings["oracle"] == "crowd":
        return as_message("Only columns and responses are tried: the gate is planned on its own page.")
    if settings.get("arrival", "pool") == "stream":
        return as_message("Other windows of a stream are not tried, since longer ones let answers wait.")
    if len(settings["classes"]) > MOST_DIVIDED_CLASSES:
        return as_message(
            "Models that divide epsilon over the classes are not tried of more than {most} classes.",
            most=MOST_DIVIDED_CLASSES,
        )
    return ""


def settings_to_try(settings: Mapping[str, Any], setup: Setup, epsilon: float) -> Iterator[Changes]:
    """Yield the changes that are worth trying, sound or not, those that are likeliest to help first."""
    if untried(settings):
        return
    if settings["oracle"] == "crowd":
        yield {}
        yield from _columns(settings)
        yield from _responses(settings)
        return
    if setup.stream:
        yield {}
        yield from _columns(settings)
        yield from _estimators(settings)
        return
    in_blocks = bool(setup.block_rates)
    base: Changes = {} if in_blocks else _shared(setup, epsilon)
    yield base
    yield from map(dict, strategy_choice(setup).other_blocks()) if in_blocks else _rounds(settings, setup, epsilon)
    for wanted in (*_columns(settings), *_estimators(settings)):
        yield base | wanted


def _shared(setup: Setup, epsilon: float) -> Changes:
    """Let so many models share what choosing leaves; where each round costs, the rounds to come are counted."""
    rounds = series_epsilon(setup, simulated_strategy(setup))
    if rounds >= epsilon:
        return {"maximum_releases": setup.releases}
    training = rounded_down((epsilon - rounds) / setup.releases)
    return {"maximum_releases": setup.releases, "training_epsilon": training}


def _responses(settings: Mapping[str, Any]) -> Iterator[Changes]:
    """Name the other options of how answers are randomised, where these change no price."""
    randomizer = chosen_randomizer(settings)
    tried: Collection[str] = randomizer.tried if isinstance(randomizer, Varied) else ()
    for name in tried:
        declared, stands = declaration_of(name), settings.get(name)
        if declared is not None and stands:
            yield from ({name: option} for option in declared.options if option != stands)


def _rounds(settings: Mapping[str, Any], setup: Setup, epsilon: float) -> Iterator[Changes]:
    """Try other strategies, and fewer or more models of as many labels."""
    for choice in CATALOGUE.of_kind(Kind.STRATEGY):
        assert issubclass(choice, StrategyChoice)
        if choice.tried and choice.name != setup.selection and not choice.sound.broken(settings):
            yield {"selection": choice.name, "maximum_releases": None if choice.in_blocks else setup.releases}
    labels = setup.label_counts[-1] if setup.label_counts else 0
    if not labels:
        return
    for releases in RELEASES:
        after = max(2, labels // releases)
        fewer = replace(setup, releases=releases, labels_per_release=after)
        yield _shared(fewer, epsilon) | {"labels_per_release": after}


def reads_encoder_columns(settings: Mapping[str, Any]) -> bool:
    """Say whether features are the leading columns of the public sentence encoder."""
    features = chosen_of(Kind.FEATURES, settings)
    declared = () if features is None else features.parameters()
    return settings["data_kind"] == "text" and TEXT_COLUMNS in {each.name for each in declared}


def _columns(settings: Mapping[str, Any]) -> Iterator[Changes]:
    """Try half and double the columns, where their number is a setting that features use."""
    if settings["data_kind"] == "table":
        return
    name = TEXT_COLUMNS if reads_encoder_columns(settings) else "feature_dimension"
    now = int(settings[name])
    for wanted in (max(2, now // 2), min(2 * now, MOST_COLUMNS)):
        if wanted != now and now <= MOST_COLUMNS:
            yield {name: wanted}


def _estimators(settings: Mapping[str, Any]) -> Iterator[Changes]:
    """Name the other models; what is planned by the number of classes is one of them under another name."""
    n_classes, standing = len(settings["classes"]), chosen_of(Kind.ESTIMATOR, settings)
    every = [choice for choice in CATALOGUE.of_kind(Kind.ESTIMATOR) if issubclass(choice, EstimatorChoice)]
    same = next((stands_for(choice, n_classes) for choice in every if choice is standing), None)
    for choice in sorted(every, key=lambda each: each.rank):
        many = n_classes > MOST_DIVIDED_CLASSES and issubclass(choice, ConvexChoice)
        if choice.sound.broken(settings) or many or missing_for(choice):
            continue
        if stands_for(choice, n_classes) is not same:
            yield {"estimator": choice.name}
