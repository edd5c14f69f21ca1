"""Another order of the same tests: modules shuffled, and the tests of each."""

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar


class Named(Protocol):
    """What stands in a file under a name."""

    nodeid: str


Item = TypeVar("Item", bound=Named)


def shuffled(items: Sequence[Item], seed: str) -> list[Item]:
    """Return the items in an order drawn from the seed; those of a module stay together, with its fixtures."""
    rng = random.Random(seed)
    modules: dict[str, list[Item]] = {}
    for item in sorted(items, key=lambda item: item.nodeid):
        modules.setdefault(item.nodeid.partition("::")[0], []).append(item)
    groups = list(modules.values())
    rng.shuffle(groups)
    for group in groups:
        rng.shuffle(group)
    return [item for group in groups for item in group]
