"""The texts that passed the gate, most uncertain first, handed out until the annotation budget is spent."""

from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class AnnotationBudget:
    """What may still be spent on answers; None is without a limit.

    Parameters
    ----------
    labels : int, optional
        Answers that may still be asked for, >= 0.
    money : Decimal, optional
        Money that may still be spent, >= 0, in the currency of the price.
    price : Decimal
        Price of an answer, >= 0, and > 0 where money is limited.
    labels_per_example : int
        Answers each example takes, >= 1.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """

    labels: int | None = None
    money: Decimal | None = None
    price: Decimal = Decimal(0)
    labels_per_example: int = 1

    def __post_init__(self) -> None:
        if self.labels is not None and self.labels < 0:
            raise ValueError(f"labels must be >= 0, got {self.labels}")
        if self.money is not None and self.money < 0:
            raise ValueError(f"money must be >= 0, got {self.money}")
        if self.price < 0 or (self.money is not None and self.price == 0):
            raise ValueError(f"a limit in money needs a price > 0, got {self.price}")
        if self.labels_per_example < 1:
            raise ValueError(f"labels_per_example must be >= 1, got {self.labels_per_example}")

    @property
    def examples(self) -> int | None:
        """Examples that can be paid for in full, whichever limit is nearer; None without a limit."""
        limits = [] if self.labels is None else [self.labels // self.labels_per_example]
        if self.money is not None:
            limits.append(int(self.money // (self.price * self.labels_per_example)))
        return min(limits, default=None)

    def after(self, examples: int) -> "AnnotationBudget":
        """Return what is left once `examples` examples are asked about.

        Raises
        ------
        ValueError
            If the budget does not pay for so many.
        """
        affordable = self.examples
        if affordable is not None and examples > affordable:
            raise ValueError(f"the budget pays for {affordable} examples, not for {examples}")
        answers = examples * self.labels_per_example
        return replace(
            self,
            labels=None if self.labels is None else self.labels - answers,
            money=None if self.money is None else self.money - answers * self.price,
        )


class RankedExamplePool:
    """Examples in the order in which they are worth an answer; each one handed out is paid for and gone.

    Everything here is post-processing of the gate's output by a released model, so its order may be shown.

    Parameters
    ----------
    ids : ndarray of int64, shape (n,)
        Distinct examples that passed the gate.
    uncertainty : ndarray of float64, shape (n,)
        How unsure the model is of each over several draws, larger is less sure; equal ones keep the order of `ids`.
    confidence : ndarray of float64, shape (n,)
        Averaged probability of the leading class of each.
    budget : AnnotationBudget
        What the answers may cost.

    Raises
    ------
    ValueError
        If shapes differ, ids repeat or an uncertainty is not a number.

    References
    ----------
    .. [1] Feyisetan, Drake, Balle, Diethe, "Privacy-preserving active learning on sensitive data for user intent
       classification", 2019, Algorithm 1.
    """

    def __init__(
        self,
        ids: NDArray[np.int64],
        uncertainty: NDArray[np.float64],
        confidence: NDArray[np.float64],
        *,
        budget: AnnotationBudget,
    ) -> None:
        if not (ids.ndim == 1 and ids.shape == uncertainty.shape == confidence.shape):
            raise ValueError(f"shapes must be (n,), got {ids.shape}, {uncertainty.shape} and {confidence.shape}")
        if len(np.unique(ids)) != len(ids):
            raise ValueError("ids must be distinct")
        if np.isnan(uncertainty).any():
            raise ValueError("uncertainty must be numbers")
        order = np.argsort(-uncertainty, kind="stable")
        self.ids, self.uncertainty, self.confidence = ids[order], uncertainty[order], confidence[order]
        self.budget = budget
        self._next = 0

    def __len__(self) -> int:
        """Return how many examples wait, affordable or not."""
        return len(self.ids) - self._next

    @property
    def affordable(self) -> int:
        """Examples that wait and that the budget pays for."""
        examples = self.budget.examples
        return len(self) if examples is None else min(len(self), examples)

    @property
    def spent(self) -> bool:
        """True where the budget does not pay for another example."""
        return self.budget.examples == 0

    def next_examples(self, n: int = 1) -> NDArray[np.int64]:
        """Hand out the `n` most uncertain examples, fewer where the pool or the budget ends; each comes once."""
        if n < 0:
            raise ValueError(f"n must be >= 0, got {n}")
        taken = min(n, self.affordable)
        self.budget = self.budget.after(taken)
        start, self._next = self._next, self._next + taken
        return self.ids[start : self._next]

    def waiting(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Return ids, uncertainty and confidence of what was not handed out yet, most uncertain first."""
        return self.ids[self._next :], self.uncertainty[self._next :], self.confidence[self._next :]
