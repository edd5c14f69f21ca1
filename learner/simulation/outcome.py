"""Outcome of a simulation on labelled public data, beside what it must beat."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import f1_score

# Written into every outcome, so that no copy of the figures loses it.
MARK = "simulation on public data, no guarantee: its randomness is seeded"


@dataclass(frozen=True, slots=True)
class MeanAccuracy:
    accuracy: float
    accuracy_se: float
    macro_f1: float

    def __post_init__(self) -> None:
        for name in ("accuracy", "macro_f1"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie in [0, 1], got {getattr(self, name)}")
        if not 0 <= self.accuracy_se < math.inf:
            raise ValueError(f"accuracy_se must be finite and >= 0, got {self.accuracy_se}")

    @classmethod
    def over_seeds(cls, predictions: Sequence[ArrayLike], truth: ArrayLike) -> "MeanAccuracy":
        right = np.asarray(truth)
        made = [np.asarray(answers) for answers in predictions]
        if not made or any(answers.shape != right.shape for answers in made):
            raise ValueError(f"predictions must be arrays of shape {right.shape}, got {[a.shape for a in made]}")
        shares = np.array([np.mean(answers == right) for answers in made])
        classes = np.unique(right)
        f1 = [f1_score(right, answers, labels=classes, average="macro", zero_division=0) for answers in made]
        error = float(shares.std(ddof=1) / math.sqrt(len(shares))) if len(shares) > 1 else 0.0
        return cls(float(shares.mean()), error, float(np.mean(f1)))


@dataclass(frozen=True, slots=True)
class SimulatedAccount:
    """One account of the simulated project and the limit that a release of it would print."""

    scope: str
    unit: str
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon < math.inf or not 0 <= self.delta <= 1:
            raise ValueError(f"epsilon and delta are out of range: {self.epsilon}, {self.delta}")


@dataclass(frozen=True, slots=True)
class OutcomePoint:
    labels: int
    project: MeanAccuracy
    random: MeanAccuracy
    version_0: MeanAccuracy
    no_privacy: MeanAccuracy
    constant: MeanAccuracy
    releases: tuple[MeanAccuracy, ...] = ()

    def __post_init__(self) -> None:
        if self.labels < 0:
            raise ValueError(f"labels must be >= 0, got {self.labels}")

    @property
    def beats_constant(self) -> bool:
        return self.project.accuracy > self.constant.accuracy


@dataclass(frozen=True, slots=True)
class Outcome:
    """Accounts and points of one simulated project, with notes in plain sentences.

    `gate` says of a crowd's project how many different texts there are, how many `passed`, and whether so few did that
    more records were `assumed`.
    """

    accounts: tuple[SimulatedAccount, ...]
    points: tuple[OutcomePoint, ...]
    notes: tuple[str, ...] = ()
    gate: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON: `accounts`, `points`, `notes`, the mark, and `gate` where there is one."""
        points = [asdict(point) for point in self.points]
        return {
            "accounts": [asdict(account) for account in self.accounts],
            "points": [
                {name: list(value) if name == "releases" else value for name, value in point.items() if value != ()}
                for point in points
            ],
            "notes": list(self.notes),
            "simulation": MARK,
        } | ({} if self.gate is None else {"gate": dict(self.gate)})
