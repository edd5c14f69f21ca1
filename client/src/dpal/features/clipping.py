"""Clip rows to an L2 ball so that the stored float32 numbers honour the bound exactly."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

UNIT_ROUNDOFF = 2.0**-53
# Squares of numbers up to here, times any realistic width, stay below the float64 maximum.
SAFE_MAGNITUDE = 1e140


def clip_rows(rows: ArrayLike, *, norm_bound: float) -> NDArray[np.float32]:
    r"""Scale down every row longer than `norm_bound`, rounding outward.

    The rule is total: NaN counts as 0 and an infinity as the largest finite number of its sign, so
    no record can make it fail. It is idempotent, and the true L2 norm of every float32 row it returns is at
    most `norm_bound`, not merely up to rounding.

    Parameters
    ----------
    rows : array_like of shape (n, d)
        Any real numbers.
    norm_bound : float
        Radius of the ball, within [1e-30, 1e30].

    Returns
    -------
    ndarray of float32, shape (n, d)

    Notes
    -----
    A float64 norm of d numbers is off by a relative error below :math:`(d + 2) u`, and a scaled row
    by :math:`3u` more. A row passes untouched when its computed norm leaves four times that room, and is otherwise
    scaled to leave eight times; numbers are then rounded to float32 towards zero, which only
    shortens a row.
    """
    wide = np.array(rows, dtype=np.float64)
    if wide.ndim != 2:
        raise ValueError(f"rows must be two-dimensional, got {wide.ndim} dimensions")
    check_norm_bound(norm_bound)
    room = 4 * (wide.shape[1] + 8) * UNIT_ROUNDOFF
    norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    # False for NaN as well; most batches hold nothing of the kind, and are looked through once.
    if not (norms <= SAFE_MAGNITUDE).all():
        np.nan_to_num(wide, copy=False)
        _shrink_huge_rows(wide)
        norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    long = norms > norm_bound * (1 - room)
    if long.any():
        wide[long] *= (norm_bound * (1 - 2 * room) / norms[long])[:, None]
    return round_towards_zero(wide)


def check_norm_bound(norm_bound: float) -> float:
    """Return `norm_bound` if float32 rows can honour it."""
    if not 1e-30 <= norm_bound <= 1e30:
        raise ValueError(f"norm_bound must be within [1e-30, 1e30], got {norm_bound}")
    return float(norm_bound)


def round_towards_zero(values: NDArray[np.float64]) -> NDArray[np.float32]:
    narrow = values.astype(np.float32)
    grown = np.abs(narrow) > np.abs(values)
    narrow[grown] = np.nextafter(narrow[grown], np.float32(0))
    return narrow


def _shrink_huge_rows(wide: NDArray[np.float64]) -> None:
    """Divide rows whose squares would overflow; their direction is all that clipping keeps."""
    if wide.size == 0:
        return
    largest = np.maximum(wide.max(axis=1), -wide.min(axis=1))
    huge = largest > SAFE_MAGNITUDE
    if huge.any():
        wide[huge] *= (SAFE_MAGNITUDE / largest[huge])[:, None]
