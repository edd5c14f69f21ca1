"""A secret sample spread over a pool: cells that hold few records are asked about more often, by their noisy counts."""

import numpy as np
from numpy.typing import NDArray

from learner.linear_model import LinearModel
from learner.strategies.base import Series
from learner.strategies.cells import CELLS, record_cells
from learner.strategies.rows import ListedRows, Rows
from learner.strategies.secret_sample import SecretSample
from privacy.accounting.events import Event
from privacy.accounting.sums import cell_counts_event
from privacy.mechanisms.cell_counts import release_cell_counts
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.screening import coin_probability, flip_coins

BLOCK_ROWS = 8192
# No cell is asked at less than this share of the mean rate.
LEAST_SHARE = 0.1
TINY = 1e-9


def fitted_sizes(counts: NDArray[np.int64], total: int, noise_scale: float) -> NDArray[np.float64]:
    """Return what noisy counts say of the sizes of cells, shape (cells,): none below 0, and together a public total.

    The nearest such sizes are drawn to their mean by the share of the counts' variance that noise has, as James and
    Stein do: else cells that seem small are mostly those that noise made so, and too many are asked there.
    """
    values = counts.astype(np.float64)
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    last = int(np.flatnonzero(falling > excess)[-1]) if total > 0 else 0
    nearest = np.maximum(values - excess[last], 0.0)
    # Discrete Laplace noise has hardly less variance than the continuous one of its scale.
    of_noise = min(1.0, 2 * noise_scale**2 / max(float(values.var()), TINY))
    sizes: NDArray[np.float64] = (1 - of_noise) * nearest + of_noise * total / len(values)
    return sizes


class NoisyClusters(SecretSample):
    r"""Choose every record by a secret coin whose rate falls with how many records share its cell.

    A cell holds the rows that point along one of `CELLS` public directions more than along the others. Noisy counts of
    them are charged at once. From these, and from nothing else of other records, every cell has a rate proportional to
    one over its count, within :math:`[q_{lo}, q_{hi}]`, so that in the mean `rate` / `spread` of all records are asked.
    The release is charged at :math:`q_{hi}`, the largest rate there can be, as that of any secret sample is.

    Parameters
    ----------
    rate : float
        Largest probability :math:`q_{hi}`, 0 < rate < 1.
    epsilon : float
        Loss of the counts, > 0.
    spread : float
        Largest rate over the mean one, > 1.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    *Proof.* Given the counts, which are paid for, a record is in the sample with a probability :math:`q(x) \le q_{hi}`
    that its own row decides, whatever the others are; so the law of the release is :math:`(1-q(x))P_0+q(x)P_x` against
    :math:`P_0`, and both add up by composition.
    """

    name = "noisy_clusters"

    def __init__(self, rate: float = 0.1, *, epsilon: float = 0.05, spread: float = 4.0) -> None:
        super().__init__(rate)
        if not 1 < spread < np.inf:
            raise ValueError(f"spread must be > 1 and finite, got {spread}")
        self.spread = float(spread)
        self.counts_event = cell_counts_event(epsilon, CELLS)
        self.low = coin_probability(LEAST_SHARE * float(self.high) / self.spread)

    def decide(
        self, X: NDArray[np.float32], rows: NDArray[np.int64], model: LinearModel | None, rng: RandomSource
    ) -> NDArray[np.bool_]:
        """Count the rows of every cell and flip the coin of each row, shape (rows,)."""
        rates = self.rates_of(self.counted(X, ListedRows(rows), rng), len(rows))
        wanted = [self.of_rows(X, block, rates) for block in ListedRows(rows).blocks(BLOCK_ROWS)]
        return flip_coins(np.concatenate([np.empty(0), *wanted]), high=self.high, low=self.low, rng=rng)

    def counted(self, X: NDArray[np.floating], rows: Rows, rng: RandomSource) -> NDArray[np.int64]:
        """Return how many of the rows are in each cell, with the noise of `counts_event`, shape (CELLS,)."""
        cells = (record_cells(X[block]) for block in rows.blocks(BLOCK_ROWS))
        return release_cell_counts(cells, self.counts_event, rng=rng)

    def rates_of(self, counts: NDArray[np.int64], total: int) -> NDArray[np.float64]:
        """Return the rate of each cell, shape (CELLS,), of noisy counts: whatever they are, within both bounds.

        Rates are so high that `total` records, as many as there are slots, are asked at the mean rate at most.
        """
        low, high = float(self.low), float(self.high)
        sizes = fitted_sizes(counts, total, self.counts_event.noise_scale)
        # A size is known to about the scale of its noise: by less than that no cell is told from an empty one.
        divisors = sizes + self.counts_event.noise_scale
        # How many are asked grows with the number that is asked of a cell within both bounds, in straight pieces.
        levels = np.unique(np.concatenate([low * divisors, high * divisors]))
        asked = np.clip(levels[:, None] / divisors, low, high) @ sizes
        level = float(np.interp(high / self.spread * total, asked, levels))
        return np.clip(level / divisors, low, high)

    def of_rows(
        self, X: NDArray[np.floating], rows: NDArray[np.int64], rates: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the rate of each row; what is in no cell has the smallest."""
        return np.append(rates, float(self.low))[record_cells(X[rows])]

    def thin(
        self, X: NDArray[np.floating], rows: NDArray[np.int64], rates: NDArray[np.float64], rng: RandomSource
    ) -> NDArray[np.int64]:
        """Keep of rows that a coin of exactly `rate` has chosen what the rates of their cells would have chosen.

        Thinning never raises a probability, so the charge at `rate` covers it, whatever its own coins are rounded to.
        """
        return rows[rng.random(rows.shape) < self.of_rows(X, rows, rates) / self.rate]

    def event_for(self, *, pool_size: int, picks: int, series: Series) -> Event:
        """Return the event of the counts; who is asked stays inside."""
        return self.counts_event
