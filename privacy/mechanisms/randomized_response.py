"""Say one of K classes so that nobody can be sure which was meant: randomised response, and what its rivals have."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.answers import ODDS_UNIT, check_odds
from privacy.accounting.events import AnswersEvent, RandomizedAnswersEvent
from privacy.mechanisms.randomness import RandomSource

MECHANISMS: Final[dict[type[AnswersEvent], "type[ResponseMechanism]"]] = {}


class ResponseMechanism(ABC):
    """Says one of K classes in place of the true one; the law of what is said is public, and learned from.

    Attributes
    ----------
    charged_as : type of AnswersEvent
        The event by which it is paid for, and found: one class of events has one mechanism.
    """

    __slots__ = ()
    charged_as: ClassVar[type[AnswersEvent]]

    def __init_subclass__(cls) -> None:
        """Note whose mechanism it is."""
        known = MECHANISMS.get(cls.charged_as)
        # dataclass(slots=True) builds the class a second time under the same name.
        if known is not None and known.__qualname__ != cls.__qualname__:
            raise TypeError(f"events {cls.charged_as.kind} already have the mechanism {known.__qualname__}")
        MECHANISMS[cls.charged_as] = cls

    @classmethod
    @abstractmethod
    def of_event(cls, event: AnswersEvent, n_classes: int) -> Self:
        """Return the mechanism as the event of its own class pays for it, for so many classes."""

    @abstractmethod
    def kept(self, priors: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Return which classes may be said where public chances of shape (n, K) are known, shape (n, K)."""

    @abstractmethod
    def release(self, classes: NDArray[np.integer], kept: NDArray[np.bool_], *, rng: RandomSource) -> NDArray[np.int64]:
        """Say something in place of each true class, shape (n,): a kept class."""

    @abstractmethod
    def likelihoods(self, said: NDArray[np.integer], kept: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return P(said | true) for what was said and every class that may have been true, shape (n, K)."""


@dataclass(frozen=True, slots=True)
class RandomizedResponse(ResponseMechanism):
    r"""Randomised response on the k classes a public prior finds likeliest (RRTop-k).

    A class that is kept is said with weight `odds` if it is the true one, else with weight ``ODDS_UNIT``; a true class
    that is not kept is replaced by a uniform one of those that are. The k that makes
    :math:`p(\text{top } k)\, e^\varepsilon / (e^\varepsilon + k - 1)` largest is used, which with a uniform prior is K:
    plain randomised response.

    Every draw compares integers, so the law is that of `mass` exactly.

    Parameters
    ----------
    n_classes : int
        Number K of declared classes, >= 2.
    odds : int
        Weight of the true class, as `privacy.accounting.answers.response_odds` gives it.

    Notes
    -----
    The prior may be a function of public data and of earlier responses only. One that has seen an answer voids the
    proof.

    References
    ----------
    .. [1] Ghazi, Golowich, Kumar, Manurangsi, Zhang, "Deep learning with label differential privacy", 2021,
       Algorithm 2 and Theorem 1.
    .. [2] Warner, "Randomized response: a survey technique for eliminating evasive answer bias", 1965.
    """

    n_classes: int
    odds: int
    charged_as: ClassVar[type[RandomizedAnswersEvent]] = RandomizedAnswersEvent

    def __post_init__(self) -> None:
        if self.n_classes < 2:
            raise ValueError(f"n_classes must be >= 2, got {self.n_classes}")
        check_odds(self.odds)
        if self.total(self.n_classes) > 2**63:
            raise ValueError(f"odds {self.odds} with {self.n_classes} classes do not fit one draw")

    @classmethod
    def of_event(cls, event: AnswersEvent, n_classes: int) -> Self:
        """Return the response with the weight that is charged."""
        assert isinstance(event, RandomizedAnswersEvent)
        return cls(n_classes, event.odds)

    def total(self, kept: int) -> int:
        """Return the sum of the weights where `kept` classes are kept."""
        return self.odds + (kept - 1) * ODDS_UNIT

    def kept(self, priors: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Return which classes each public prior, shape (n, K), keeps: the likeliest, at a tie the lower number."""
        rows = np.asarray(priors, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_classes:
            raise ValueError(f"priors must have shape (n, {self.n_classes}), got {rows.shape}")
        if not (np.isfinite(rows).all() and (rows >= 0).all() and (rows.max(axis=1, initial=0.0) > 0).all()):
            raise ValueError("priors must be finite numbers >= 0, and not all 0")
        order = np.argsort(-rows, axis=1, kind="stable")
        # A power of two keeps every digit, and sums and products of the smallest and largest floats in range.
        scaled = np.ldexp(rows, -np.frexp(rows.max(axis=1, keepdims=True))[1])
        sums = np.cumsum(np.take_along_axis(scaled, order, axis=1), axis=1)
        ratio = self.odds / ODDS_UNIT
        hits = sums * (ratio / (ratio + np.arange(self.n_classes)))
        # The sums of equal chances differ by rounding; so small a difference decides nothing.
        good = hits >= hits.max(axis=1, keepdims=True) * (1 - 1e-12)
        sizes = self.n_classes - good[:, ::-1].argmax(axis=1)
        keeps = np.zeros(rows.shape, dtype=np.bool_)
        np.put_along_axis(keeps, order, np.arange(self.n_classes) < sizes[:, None], axis=1)
        return keeps

    def release(self, classes: NDArray[np.integer], kept: NDArray[np.bool_], *, rng: RandomSource) -> NDArray[np.int64]:
        """Randomise each true class once, shape (n,); nothing else here is secret. A kept class is said."""
        truth, keeps = np.asarray(classes, dtype=np.int64), self._checked(kept)
        if truth.shape != (len(keeps),):
            raise ValueError(f"classes and kept must have one row a question, got {truth.shape} and {keeps.shape}")
        # The message does not say which class: it is an answer.
        if truth.size and not (truth.min() >= 0 and truth.max() < self.n_classes):
            raise ValueError(f"classes must lie in [0, {self.n_classes})")
        said = np.empty(len(truth), dtype=np.int64)
        sizes = keeps.sum(axis=1)
        for size in np.unique(sizes):
            rows = np.flatnonzero(sizes == size)
            places = np.nonzero(keeps[rows])[1].reshape(len(rows), size)
            said[rows] = self._said(truth[rows], places, rng)
        return said

    def _said(self, truth: NDArray[np.int64], places: NDArray[np.int64], rng: RandomSource) -> NDArray[np.int64]:
        """Draw for questions that keep equally many classes; what is drawn does not depend on the truth."""
        size = places.shape[1]
        uniform = rng.integers(size, size=len(truth))
        weight = rng.integers(self.total(size), size=len(truth))
        own = places == truth[:, None]
        place = own.argmax(axis=1)
        other = (weight - self.odds) // ODDS_UNIT
        response = np.where(weight < self.odds, place, other + (other >= place))
        chosen = np.where(own.any(axis=1), response, uniform)
        return np.take_along_axis(places, chosen[:, None], axis=1)[:, 0]

    def mass(self, said: int, true: int, kept: NDArray[np.bool_]) -> Fraction:
        """Return the exact probability that `said` is said for the class `true`; `kept` has shape (K,)."""
        size = int(self._checked(np.asarray(kept)[None]).sum())
        if not kept[said]:
            return Fraction(0)
        if not kept[true]:
            return Fraction(1, size)
        return Fraction(self.odds if said == true else ODDS_UNIT, self.total(size))

    def channel(self, kept: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return P(said | true) of one question, shape (K, K) with a row for each class said; `kept` has shape (K,)."""
        everything = np.arange(self.n_classes)
        return self.likelihoods(everything, np.broadcast_to(kept, (self.n_classes, self.n_classes)), absent=0.0)

    def likelihoods(
        self, said: NDArray[np.integer], kept: NDArray[np.bool_], *, absent: float | None = None
    ) -> NDArray[np.float64]:
        """Return P(said | true) for what was said and every class that may have been true, shape (n, K).

        It is a public function of the prior and of what was said. `absent` is the value of rows whose class was not
        kept; without it such a row is an error.
        """
        keeps = self._checked(kept)
        spoken = np.asarray(said, dtype=np.int64)
        sizes = keeps.sum(axis=1, keepdims=True)
        totals = self.odds + (sizes - 1) * float(ODDS_UNIT)
        values: NDArray[np.float64] = np.where(keeps, ODDS_UNIT / totals, 1 / sizes)
        rows = np.arange(len(spoken))
        values[rows, spoken] = (self.odds / totals)[:, 0]
        missing = ~keeps[rows, spoken]
        if missing.any():
            if absent is None:
                raise ValueError("what was said must be among the classes that were kept")
            values[missing] = absent
        return values

    def information(self, priors: NDArray[np.floating], kept: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return what a response is expected to tell about the true class, in nats, shape (n,).

        `priors`, shape (n, K), are public chances of the classes, `kept` what they keep.
        """
        keeps = self._checked(kept)
        chances = np.asarray(priors, dtype=np.float64)
        chances = chances / chances.sum(axis=1, keepdims=True)
        sizes = keeps.sum(axis=1)
        totals = self.odds + (sizes - 1) * float(ODDS_UNIT)
        true, other = self.odds / totals, ODDS_UNIT / totals
        inside = np.where(keeps, chances, 0.0).sum(axis=1)
        said = chances * (true - other)[:, None] + (inside * other + (1 - inside) / sizes)[:, None]
        said = np.where(keeps, said, 0.0)
        spread = -(said * np.log(said, out=np.zeros_like(said), where=said > 0)).sum(axis=1)
        noise = -(true * np.log(true) + (sizes - 1) * other * np.log(other))
        information: NDArray[np.float64] = spread - inside * noise - (1 - inside) * np.log(sizes)
        return np.maximum(information, 0.0)

    def _checked(self, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
        keeps = np.asarray(kept, dtype=np.bool_)
        if keeps.ndim != 2 or keeps.shape[1] != self.n_classes:
            raise ValueError(f"kept must have shape (n, {self.n_classes}), got {keeps.shape}")
        if not keeps.any(axis=1).all():
            raise ValueError("every question must keep a class")
        return keeps


def mechanism_of(event: AnswersEvent, n_classes: int | None = None) -> ResponseMechanism:
    """Return what draws the responses that an event pays for; for so many classes, else for those of the event.

    `TypeError` if nothing does: then nobody may be charged for them.
    """
    found = MECHANISMS.get(type(event))
    if found is None:
        raise TypeError(f"no mechanism draws the responses of {event.kind}")
    return found.of_event(event, event.n_classes if n_classes is None else n_classes)
