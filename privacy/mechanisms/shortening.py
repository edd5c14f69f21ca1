"""Rows of bounded norm as whole numbers of steps."""

import numpy as np
from numpy.typing import NDArray


def shortened_rows(rows: NDArray[np.floating], *, norm_bound: float, steps: int) -> NDArray[np.float64]:
    """Return rows as whole numbers of steps, so many to the bound, rounded towards zero so that none becomes longer."""
    whole = np.trunc(np.asarray(rows, dtype=np.float64) * (steps / norm_bound))
    squares = np.einsum("ij,ij->i", whole, whole)
    if not (squares <= steps**2).all():
        raise ValueError(f"rows must be finite with a norm of at most {norm_bound}: clip them first")
    return whole
