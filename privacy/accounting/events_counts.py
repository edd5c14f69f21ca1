"""The event of noisy counts: how many records lie in each of some cells that were fixed without looking at any."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from privacy.accounting import checks
from privacy.accounting.cost import ADJACENCIES, Adjacency, Cost
from privacy.accounting.event import Event, EventWords
from privacy.accounting.events_training import ANY_ADJACENCY
from privacy.accounting.units import float_at_least
from privacy.wording import as_message, as_plural_message, ngettext_noop
from privacy.wording import gettext_noop as _

MOST_CELLS = 65_536


@dataclass(frozen=True, slots=True)
class CellCountsEvent(Event):
    """Discrete Laplace noise of scale `noise_scale` on the number of records in each of `cells` public cells.

    A record is in one cell or in none, and an empty slot in none. Every cell's count is released, so also those of
    cells that hold nobody.
    """

    cells: int
    noise_scale: float
    kind: ClassVar[str] = "cell_counts"
    words: ClassVar[EventWords] = EventWords(
        _("noisy counts of clusters"),
        ngettext_noop(
            "noisy counts of records in %(cells)s public cell, for a sample spread over it",
            "noisy counts of records in %(cells)s public cells, for a sample spread over them",
        ),
        counted="cells",
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        """Check the ranges."""
        checks.at_least("cells", self.cells, 1)
        checks.positive("noise_scale", self.noise_scale)
        if self.cells > MOST_CELLS:
            raise ValueError(as_message("at most {most} cells can be counted, got {n}", most=MOST_CELLS, n=self.cells))

    def sensitivity(self, adjacency: Adjacency = "null") -> int:
        """Return how far one neighbour moves the counts in L1; another record leaves one cell and enters another."""
        checks.one_of("adjacency", adjacency, ADJACENCIES)
        return 2 if adjacency == "replace" and self.cells > 1 else 1

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the price of all counts together; whatever is computed from them is free."""
        return Cost(float_at_least(Fraction(self.sensitivity(adjacency)) / Fraction(self.noise_scale)))

    def summary(self) -> str:
        """Return one sentence."""
        return as_plural_message(
            "records counted in {n} public cell with discrete Laplace noise of scale {noise_scale:.4g}",
            "records counted in {n} public cells with discrete Laplace noise of scale {noise_scale:.4g}",
            n=self.cells,
            noise_scale=self.noise_scale,
        )


def cell_counts_event(epsilon: float, cells: int) -> CellCountsEvent:
    """Return the event with the least noise that costs at most `epsilon` under null.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """
    checks.positive("epsilon", epsilon)
    # Dividing and pricing may each round by a unit in the last place.
    return CellCountsEvent(cells, 1 / epsilon * (1 + 2.0**-50))
