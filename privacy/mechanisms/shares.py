"""Counts of records by predicted class, and of labels against predictions, released with exact discrete noise."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.counts import ClassCountsEvent
from privacy.mechanisms.discrete import DiscreteLaplace
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.session import Measurement, Queries

Cells = NDArray[np.int64]
# The cell of a record that is not counted.
NOWHERE = -1


def predicted_cells(predicted: Cells, groups: Cells, *, n_classes: int) -> Cells:
    """Return the one cell of each record of the pool, shape (n, 1): its group and its predicted class."""
    return (groups * n_classes + predicted)[:, np.newaxis]


def label_cells(labels: Cells, groups: Cells, *, n_classes: int) -> Cells:
    """Return the one cell of each sampled record, shape (n, 1); a label of `n_classes` says that there is none."""
    return (groups * (n_classes + 1) + labels)[:, np.newaxis]


def compared_cells(labels: Cells, predicted: Cells, groups: Cells, *, n_classes: int) -> Cells:
    """Return the cells of each sampled record, shape (n, 2).

    A group has three rows of ``n_classes + 1`` cells: label and prediction agree on a class, the class is only
    predicted, it is only the label. A record whose label was predicted has one cell.
    """
    width = n_classes + 1
    base = groups * (3 * width)
    agree = labels == predicted
    first = np.where(agree, base + labels, base + width + predicted)
    second = np.where(agree, NOWHERE, base + 2 * width + labels)
    return np.stack([first, second], axis=1)


def count_query(name: str, rows: Callable[[], Cells], event: ClassCountsEvent, *, rng: RandomSource) -> Queries:
    """Return the query that counts records by cell and answers with noise.

    Parameters
    ----------
    name : str
        Of the query.
    rows : callable
        Returns the cells of each record, shape (n, event.counted), `NOWHERE` where a record has fewer.
    event : ClassCountsEvent
        The noise and its price.
    rng : RandomSource
        Source of the noise; exact only if secure.

    Raises
    ------
    ValueError
        If a record has more cells than are paid for, or one that does not exist; raised by the query.
    """

    def answer() -> Measurement:
        cells = rows()
        if cells.ndim != 2 or cells.shape[1] != event.counted:
            raise ValueError(f"{event.counted} cells of a record are paid for, got shape {cells.shape}")
        if cells.size and not NOWHERE <= cells.min() <= cells.max() < event.cells:
            raise ValueError(f"cells must lie in [{NOWHERE}, {event.cells})")
        exact = np.bincount(cells[cells != NOWHERE], minlength=event.cells).astype(np.int64)
        noisy = DiscreteLaplace(event.scale).release(exact, rng=rng)
        return Measurement(name, float(event.counted), event.scale, noisy.astype(np.float64))

    return {name: answer}
