"""What running sums tell after each of their releases: an estimate of all batches so far, and how noisy it is."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np

from privacy.accounting.sums import PARTS, RunningSumsEvent
from privacy.arrays import Array
from privacy.mechanisms.sums import NoisySums


@dataclass(frozen=True, slots=True)
class RunningTotal:
    """Everything that later estimates need of the releases so far; all of it is post-processing.

    Attributes
    ----------
    finished : ndarray of shape (rows, d)
        Estimated sums of all finished epochs: moments, if any, above class sums.
    current : ndarray of shape (rows, d)
        Estimated sums of the batches of this epoch.
    buffers : ndarray of shape (n_decays, rows, d)
        Decayed estimates of single batches, which later releases still contain.
    place : int
        Releases of this epoch.
    epochs : int
        Finished epochs.
    """

    finished: Array
    current: Array
    buffers: Array
    place: int = 0
    epochs: int = 0

    @classmethod
    def empty(cls, event: RunningSumsEvent) -> Self:
        """Return the total before the first release."""
        d = event.sums.dimension
        shape = (event.sums.n_classes + (d if event.sums.moment_sigma else 0), d)
        return cls(np.zeros(shape), np.zeros(shape), np.zeros((len(event.decays), *shape)))

    def after(self, released: NoisySums, event: RunningSumsEvent) -> "RunningTotal":
        """Return the total once another batch was released; an epoch that is full is finished by it."""
        sums = released.class_sums if released.moments is None else np.vstack([released.moments, released.class_sums])
        weights = np.array(event.weights) / PARTS
        decays = np.array(event.decays) / PARTS
        # What the release holds of older batches, as they were estimated, is taken out of it.
        batch = sums - np.tensordot(weights, self.buffers, axes=1)
        current = self.current + batch
        if self.place + 1 == event.updates:
            nothing = np.zeros_like(current)
            return RunningTotal(self.finished + current, nothing, np.zeros_like(self.buffers), 0, self.epochs + 1)
        return replace(
            self, current=current, buffers=decays[:, None, None] * self.buffers + batch, place=self.place + 1
        )

    def sums(self, event: RunningSumsEvent) -> NoisySums:
        """Return the noisy sums of all batches so far."""
        total = self.finished + self.current
        growth = variance_growth(event)
        factor = self.epochs * growth[-1] + (growth[self.place - 1] if self.place else 0.0)
        d = event.sums.dimension if event.sums.moment_sigma else 0
        return NoisySums(
            total[:d] if d else None,
            total[d:],
            factor * event.sums.moment_sigma**2,
            factor * event.sums.class_sigma**2,
        )

    def to_json(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name) for name in ("finished", "current", "buffers")}
        packed = {name: b64encode(array.astype("<f8").tobytes()).decode() for name, array in arrays.items()}
        return {**packed, "rows": len(self.finished), "place": self.place, "epochs": self.epochs}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], event: RunningSumsEvent) -> Self:
        """Return what `to_json` wrote."""
        shape = (int(stored["rows"]), event.sums.dimension)

        def array(name: str, *lengths: int) -> Array:
            return np.frombuffer(b64decode(stored[name]), dtype="<f8").astype(np.float64).reshape(lengths)

        return cls(
            array("finished", *shape),
            array("current", *shape),
            array("buffers", len(event.decays), *shape),
            int(stored["place"]),
            int(stored["epochs"]),
        )


def variance_growth(event: RunningSumsEvent) -> Array:
    r"""Return how many times the noise of one release is in the total after each, shape (updates,).

    Notes
    -----
    Releases are :math:`C x + z`, so the estimate is :math:`A C^{-1}(Cx + z) = A x + Bz` with A the matrix of ones below
    the diagonal; the sums of squares of B's rows are returned.
    """
    return _growth(event.coefficients)


@lru_cache(maxsize=16)
def _growth(parts: tuple[int, ...]) -> Array:
    c = np.array(parts) / PARTS
    inverse = np.zeros(len(c))
    inverse[0] = 1.0
    for place in range(1, len(c)):
        inverse[place] = -c[1 : place + 1] @ inverse[place - 1 :: -1][:place]
    return np.cumsum(np.cumsum(inverse) ** 2)
