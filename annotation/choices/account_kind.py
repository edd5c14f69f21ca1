"""Choice of a pool account's filter: sums of epsilon, or of rho where many Gaussian releases are planned."""

import math
from collections.abc import Mapping
from typing import Any, Final, Literal

from annotation.choices.label_types.learning import ChargesReleases, chosen_estimator
from annotation.choices.selections import AsksInBlocks, selection_choice
from privacy.accounting.composition import zcdp_rho_limit
from privacy.accounting.event import Event
from privacy.wording import as_message

FilterName = Literal["pure", "zcdp"]
# A rho account keeps all of its delta to turn rho into epsilon: whatever it is charged has none.
DELTA_SHARE: Final = 0
# More releases than this are not compared.
MOST_COMPARED: Final = 1000


def filter_of(settings: Mapping[str, Any]) -> FilterName:
    """Return how the account of a pool is to add up: as it buys more of the releases that are planned."""
    # Declared numbers alone decide it: nothing private does.
    if settings.get("oracle") != "trusted" or settings.get("arrival", "pool") != "pool" or not _sums_in_rho(settings):
        return "pure"
    planned = settings.get("maximum_releases") or MOST_COMPARED
    pure, zcdp = (min(planned, releases_payable(settings, kind)) for kind in ("pure", "zcdp"))
    return "zcdp" if zcdp > pure else "pure"


def releases_payable(settings: Mapping[str, Any], kind: FilterName) -> int:
    release = _release_of(settings)
    if release is None:
        return 0
    if kind == "pure":
        each = release.cost(adjacency="null")
        return _times((settings["pool_epsilon"], each.epsilon), (settings["pool_delta"], each.delta))
    if not settings["pool_delta"] > 0:
        return 0
    each = release.in_rho().cost(adjacency="null")
    limit = zcdp_rho_limit(settings["pool_epsilon"], settings["pool_delta"])
    return _times((limit, each.rho), (0.0, each.delta))


def broken_on(settings: Mapping[str, Any], filter_name: str) -> dict[str, str]:
    if filter_name != "zcdp":
        return {}
    if not _sums_in_rho(settings):
        rule = as_message("This account sums rhos, and this choice has none: its argument is one of epsilons.")
        return {"selection": rule}
    release = _release_of(settings)
    if release is not None and release.in_rho().cost(adjacency="null").delta > 0:
        rule = as_message("This account sums rhos and has no delta left to give; this training needs one.")
        return {"estimator": rule}
    return {}


def _sums_in_rho(settings: Mapping[str, Any]) -> bool:
    # A series of rounds is cheap by an argument about epsilons along a path; in rho each round would stand alone.
    choice = selection_choice(settings)
    return choice is not None and choice.by_chance and not isinstance(choice, AsksInBlocks)


def _release_of(settings: Mapping[str, Any]) -> Event | None:
    choice = chosen_estimator(settings)
    chosen = None if choice is None else choice.of(settings)
    return chosen.release(settings) if isinstance(chosen, ChargesReleases) else None


def _times(*shares: tuple[float, float]) -> int:
    times = [math.inf if cost == 0 else left // cost for left, cost in shares]
    return int(min(MOST_COMPARED, max(0.0, min(times))))
