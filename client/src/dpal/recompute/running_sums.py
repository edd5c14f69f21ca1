"""Estimates that running sums give after each release: of all batches so far, and how noisy they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dpal.recompute.sums import NoisySums, best_model, released_sums
from dpal.recompute.transcript import Array, Session, Tell, Weights


@dataclass(frozen=True, slots=True)
class RunningTotal:
    """Everything that later estimates need of the releases so far.

    Its public parameters are `dimension`, `n_classes`, `moment_sigma` and `class_sigma` of one release, `updates` of an
    epoch, and the `weights`, `decays` and `coefficients` with which batches enter later releases.

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
    def empty(cls, public: Mapping[str, Any]) -> "RunningTotal":
        """Return the total before the first release."""
        d: int = public["dimension"]
        shape = (public["n_classes"] + (d if public["moment_sigma"] else 0), d)
        return cls(np.zeros(shape), np.zeros(shape), np.zeros((len(public["decays"]), *shape)))

    def after(self, released: NoisySums, public: Mapping[str, Any]) -> "RunningTotal":
        """Return the total once another batch was released; an epoch that is full is finished by it."""
        sums = released.class_sums if released.moments is None else np.vstack([released.moments, released.class_sums])
        weights, decays = np.array(public["weights"]), np.array(public["decays"])
        # What the release holds of older batches, as they were estimated, is taken out of it.
        batch = sums - np.tensordot(weights, self.buffers, axes=1)
        current = self.current + batch
        if self.place + 1 == public["updates"]:
            nothing = np.zeros_like(current)
            return RunningTotal(self.finished + current, nothing, np.zeros_like(self.buffers), 0, self.epochs + 1)
        return replace(
            self, current=current, buffers=decays[:, None, None] * self.buffers + batch, place=self.place + 1
        )

    def sums(self, public: Mapping[str, Any]) -> NoisySums:
        """Return the noisy sums of all batches so far."""
        total = self.finished + self.current
        growth = variance_growth(public["coefficients"])
        factor = self.epochs * growth[-1] + (growth[self.place - 1] if self.place else 0.0)
        d = public["dimension"] if public["moment_sigma"] else 0
        return NoisySums(
            total[:d] if d else None,
            total[d:],
            factor * public["moment_sigma"] ** 2,
            factor * public["class_sigma"] ** 2,
        )


def variance_growth(coefficients: Sequence[float]) -> Array:
    r"""Return how many times the noise of one release is in the total after each, shape (updates,).

    Notes
    -----
    Releases are :math:`C x + z`, so the estimate is :math:`A C^{-1}(Cx + z) = A x + Bz` with A the matrix of ones below
    the diagonal; the sums of squares of B's rows are returned.
    """
    return _growth(tuple(coefficients))


@lru_cache(maxsize=16)
def _growth(coefficients: tuple[float, ...]) -> Array:
    c = np.array(coefficients)
    inverse = np.zeros(len(c))
    inverse[0] = 1.0
    for place in range(1, len(c)):
        inverse[place] = -c[1 : place + 1] @ inverse[place - 1 :: -1][:place]
    return np.cumsum(np.cumsum(inverse) ** 2)


def running_sums(parameters: Mapping[str, Any], session: Session, tell: Tell) -> Weights:
    """Add further releases to a total and make the best model of it.

    The parameters are those of `RunningTotal` and `best_model`; `start`, a mapping with the total of the version before
    or None; and how many releases were `answered` since. The session answers `moments` and `class_sums` of each
    release, then `seed`.
    """
    return best_model(parameters, total_of(parameters, session).sums(parameters), session.ask("seed"))[1]


def total_of(parameters: Mapping[str, Any], session: Session) -> RunningTotal:
    """Return the total that a version ends with, and the next one starts from."""
    start = parameters["start"]
    total = RunningTotal.empty(parameters) if start is None else RunningTotal(**start)
    for _release in range(parameters["answered"]):
        total = total.after(released_sums(parameters, session), parameters)
    return total
