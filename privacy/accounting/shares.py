"""Event of noisy counts of records by cell, which the shares of classes are computed from."""

from dataclasses import dataclass
from typing import ClassVar

from privacy.accounting import checks
from privacy.accounting.cost import Adjacency, Cost
from privacy.accounting.event import Event, EventWords, counted_words
from privacy.accounting.training import ANY_ADJACENCY, records_moved
from privacy.accounting.units import outward
from privacy.wording import gettext_noop as _
from privacy.wording import ngettext_noop

MOST_CELLS = 1_000_000


@dataclass(frozen=True, slots=True)
class ClassCountsEvent(Event):
    r"""Discrete Laplace noise of `scale` on each of `cells` counts, where a record counts in at most `counted` cells.

    The prediction of a record is one cell; its label against its prediction is two where they differ.
    """

    cells: int
    counted: int
    scale: float
    kind: ClassVar[str] = "class_counts"
    words: ClassVar[EventWords] = EventWords(
        _("class counts"),
        ngettext_noop("noisy counts of %(cells)s cell", "noisy counts of %(cells)s cells"),
        counted="cells",
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        checks.at_least("cells", self.cells, 1)
        checks.at_least("counted", self.counted, 1)
        checks.positive("scale", self.scale)
        if self.cells > MOST_CELLS or self.counted > self.cells:
            raise ValueError(
                f"counted must be at most cells and cells at most {MOST_CELLS}, got {self.counted} of {self.cells}"
            )

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        r"""Return the pure loss.

        Notes
        -----
        A record that leaves or comes moves `counted` cells by 1 each, so the L1 sensitivity is `counted`; a record
        against another moves twice as many. The discrete Laplace law changes by a factor of at most
        :math:`e^{\Delta_1 / \mathrm{scale}}`. In rho that is half the square.
        """
        return Cost(outward(records_moved(adjacency) * self.counted / self.scale))

    def summary(self) -> str:
        return f"{counted_words(self.cells, 'count')} of records with discrete Laplace noise of {self.scale:.4g}"


def class_counts_event(epsilon: float, *, cells: int, counted: int, adjacency: Adjacency = "null") -> ClassCountsEvent:
    """Return the event of the least noise whose cost under `adjacency` is at most `epsilon`.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """
    checks.positive("epsilon", epsilon)
    # One part in 2**44 is more than the outward rounding of the cost.
    scale = records_moved(adjacency) * counted / epsilon * (1 + 2.0**-44)
    return ClassCountsEvent(cells, counted, scale)
