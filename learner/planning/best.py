"""Which of the settings that were tried did better than those that stand, by more than chance of the seeds shows."""

from collections.abc import Mapping, Sequence
from typing import Any

# Of one row the last point of each kind of data, as `CurvePoint` describes it.
Tried = Mapping[str, Mapping[str, Any]]


def best_row(tried: Sequence[Tried]) -> int | None:
    """Return the place of the row that beats the first one by most, None where no row surely does.

    A row counts where on some data its mean is higher by more than the distance from worst to best, of either, and on
    no data lower.

    Parameters
    ----------
    tried : sequence of mapping
        The settings that stand, then others, with `mean`, `low` and `high` of each kind of data.
    """
    if not tried:
        return None
    gains = {place: _gain(tried[0], row) for place, row in enumerate(tried)}
    place = max(gains, key=lambda place: gains[place])
    return place if gains[place] > 0 else None


def _gain(standing: Tried, row: Tried) -> float:
    """Return by how much a row is better on the mean over all data, 0 where it is not surely better."""
    differences = [row[data]["mean"] - point["mean"] for data, point in standing.items() if data in row]
    surely = [
        row[data]["mean"] - point["mean"] > max(_spread(point), _spread(row[data]))
        for data, point in standing.items()
        if data in row
    ]
    return sum(differences) / len(differences) if any(surely) and min(differences) >= 0 else 0.0


def _spread(point: Mapping[str, Any]) -> float:
    return float(point["high"] - point["low"])
