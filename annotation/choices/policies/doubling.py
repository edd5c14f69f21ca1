"""Training or updating whenever there is twice as much."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from annotation.choices.policies.base import (
    AT_LEAST_ONE,
    LONGEST_WINDOW,
    STREAM,
    WINDOW,
    WINDOW_HELP,
    StreamPolicy,
)
from annotation.choices.policies.updates import BatchPolicy, BatchState
from annotation.choices.policies.windows import asked_of
from privacy.choices import parameter
from privacy.wording import as_message
from privacy.wording import gettext_noop as _


class DoublingBlocks(BatchPolicy):
    """Close a block whenever the number of slots has doubled: disjoint blocks, each for one release.

    A release trained on its own block, regularised towards the one before, protects each record as if it were the only
    one; training on everything again would charge every release again.

    Parameters
    ----------
    first : int
        Slots of the first block, >= 1; the following ones have as many, twice as many, four times ...

    Raises
    ------
    ValueError
        If `first` is below 1.
    """

    schedule = "flsw"

    def __init__(self, first: int) -> None:
        if first < 1:
            raise ValueError(f"first must be >= 1, got {first}")
        self.first = int(first)

    def asked_at(self, rate: float) -> int:
        """Return so large a share of the first block."""
        return asked_of(self.first, rate)

    def _ends(self, state: BatchState, slots: NDArray[np.int64], stop: int) -> Iterable[int]:
        end = self.first
        while end <= stop:
            if end > state.next_slot:
                yield end
            end *= 2


@dataclass(frozen=True)
class Doubling(StreamPolicy):
    """Whenever twice as much has come in; of a stream the first block has a length.

    T releases of a pool need 2**(T-1) times the first's labels, so that an account that pays for each lasts long.
    """

    name: ClassVar[str] = "doubling"
    label: ClassVar[str] = _("whenever the number of labels, or of a stream's records, has doubled")

    window_length: int | None = parameter(
        None,
        at_least=1,
        at_most=LONGEST_WINDOW,
        arrivals=STREAM,
        label=WINDOW,
        help=WINDOW_HELP,
        rule=AT_LEAST_ONE,
    )

    def _labels_due(self, last: int, each: int) -> int:
        return max(each, 2 * last)

    def batches(self) -> DoublingBlocks:
        """Return blocks that double, from the declared length on."""
        return DoublingBlocks(self.window_length or 1)

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuse a stream whose first block has no length."""
        broken = dict(super().rules(settings))
        if settings.get("arrival") == "stream" and self.window_length is None:
            broken["window_length"] = as_message(AT_LEAST_ONE, got=None)
        return broken
