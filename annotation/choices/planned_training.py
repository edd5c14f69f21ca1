"""What one training of a pool may cost where nobody says: all of the limit, over the releases that are planned."""

import math
from collections.abc import Mapping
from typing import Any, Final

from annotation.choices.catalogue import chosen_of
from privacy.choices import BrokenRules, Kind

DIGITS: Final = 4
# Rounding outwards adds up to this share of a charge.
ROUNDED_OUTWARDS: Final = 1e-8


def planned_training(settings: Mapping[str, Any], *, shared_limit: bool = False) -> dict[str, float]:
    """Return epsilon and delta of one training by the names of their settings, in few digits and never too much.

    Empty where it is not the choice of questions that decides: in front of a crowd, of a stream, or where the settings
    break a rule that is told elsewhere.

    Parameters
    ----------
    settings : mapping
        Field names of `Project` (and `pool_epsilon`, `pool_delta`) to values.
    shared_limit : bool
        Whether other projects spend from one limit together with this one.
    """
    choice = chosen_of(Kind.STRATEGY, settings)
    trusted_pool = settings.get("oracle") == "trusted" and settings.get("arrival", "pool") == "pool"
    if choice is None or not trusted_pool:
        return {}
    around = {**settings, "shared_limit": shared_limit}
    features = chosen_of(Kind.FEATURES, settings)
    if features is not None and "features_epsilon" in {each.name for each in features.parameters()}:
        around["pool_epsilon"] -= settings.get("features_epsilon") or 0.0
    try:
        planned = choice.of(settings).whole_limit(around)
    except (BrokenRules, ValueError):
        return {}
    estimator = chosen_of(Kind.ESTIMATOR, settings)
    known = set() if estimator is None else {each.name for each in estimator.parameters()}
    return {name: rounded_down(cost) for name, cost in planned.items() if name in known and cost > 0}


def rounded_down(cost: float) -> float:
    """Return a number of four digits below a cost, with room for what is rounded outwards."""
    unit = 10.0 ** (math.floor(math.log10(cost)) - DIGITS + 1)
    return float(f"{math.floor(cost * (1 - ROUNDED_OUTWARDS) / unit) * unit:.{DIGITS}g}")
