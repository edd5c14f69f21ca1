"""Settings proposed where a project leaves them out: trainings that spend all of the limit."""

import math
from collections.abc import Mapping
from typing import Any, Final

from annotation.choices.catalogue import chosen_of
from annotation.choices.label_types.learning import chosen_estimator
from annotation.choices.policies import policy_hides_selection
from annotation.choices.selections import selection_rates
from privacy.accounting.screens import update_within
from privacy.choices import BrokenRules, Kind, Plans

DIGITS: Final = 4
# Rounding outwards adds up to this share of a charge.
ROUNDED_OUTWARDS: Final = 1e-8


def planned_settings(settings: Mapping[str, Any], *, shared_limit: bool = False) -> dict[str, Any]:
    if settings.get("oracle") != "trusted":
        return {}
    if settings.get("arrival", "pool") != "pool":
        return _whole_stream(settings)
    found: dict[str, Any] = {}
    for kind in (Kind.FEATURES, Kind.ESTIMATOR):
        found |= _planned(kind, settings, settings)
    return found | _price(settings, shared_limit=shared_limit)


def _price(settings: Mapping[str, Any], *, shared_limit: bool) -> dict[str, float]:
    estimator = chosen_of(Kind.ESTIMATOR, settings)
    around = {**settings, "shared_limit": shared_limit}
    planned = _planned(Kind.STRATEGY, settings, around)
    known = set() if estimator is None else {each.name for each in estimator.parameters()}
    return {name: rounded_down(cost) for name, cost in planned.items() if name in known and cost > 0}


def _whole_stream(settings: Mapping[str, Any]) -> dict[str, float]:
    estimator = chosen_estimator(settings)
    if estimator is None or "stream" not in estimator.sound.arrivals:
        return {}
    seen = not policy_hides_selection(settings)
    try:
        rates = selection_rates(settings)
        costs = update_within(settings["pool_epsilon"], settings["pool_delta"], *rates, selection_visible=seen)
    except (KeyError, ValueError):
        return {}
    known = {each.name for each in estimator.parameters()}
    planned = dict(zip(("training_epsilon", "training_delta"), costs, strict=True))
    return {name: rounded_down(cost) for name, cost in planned.items() if name in known and 0 < cost < math.inf}


def _planned(kind: Kind, settings: Mapping[str, Any], around: Mapping[str, Any]) -> dict[str, Any]:
    choice = chosen_of(kind, settings)
    if choice is None:
        return {}
    try:
        chosen = choice.of(settings)
        return dict(chosen.planned(around)) if isinstance(chosen, Plans) else {}
    except (BrokenRules, ValueError):
        return {}


def rounded_down(cost: float) -> float:
    """Return a number of four digits below a cost, with room for what is rounded outwards."""
    unit = 10.0 ** (math.floor(math.log10(cost)) - DIGITS + 1)
    return float(f"{math.floor(cost * (1 - ROUNDED_OUTWARDS) / unit) * unit:.{DIGITS}g}")
