"""Experiments of a reproduced paper: chunks that run, claims, tables and figures."""

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

Json = dict[str, Any]
# Whether a claim holds; None where the error of the figures leaves it open.
ClaimVerdict = bool | None
Style = Literal["line", "dashed", "points", "bars", "step"]


@dataclass(frozen=True, slots=True)
class Data:
    folder: Path | None = None

    def path(self, name: str) -> Path:
        if self.folder is None:
            raise FileNotFoundError(f"{name} is needed: name the folder that holds it with --data")
        path = self.folder / name
        if not path.is_file():
            raise FileNotFoundError(f"{name} is not in the data folder")
        return path


@dataclass(frozen=True, slots=True)
class Claim:
    text: str
    ours: str
    holds: ClaimVerdict
    rule: str


@dataclass(frozen=True, slots=True)
class PaperTable:
    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class PaperSeries:
    """One curve; `spread` is drawn as a band or error bars of that half width."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] | None = None
    style: Style = "line"


@dataclass(frozen=True, slots=True)
class Panel:
    series: Sequence[PaperSeries]
    x_label: str
    y_label: str
    title: str = ""
    x_log: bool = False
    y_log: bool = False
    # Names of the places of bars, which then lie at 0, 1, 2, ...
    x_names: Sequence[str] = ()
    # One unit of x as long as one of y: for shapes in the plane.
    equal: bool = False


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """One SVG file of panels side by side; `description` says in words what it shows."""

    name: str
    title: str
    description: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True)
class Paper:
    """A source: `unsound` says which of its mechanisms run here without their stated guarantee, and why."""

    name: str
    citation: str
    unsound: Sequence[str]
    experiments: Sequence["Experiment"] = field(default_factory=tuple)


class Experiment(ABC):
    """Some figures or a table of a paper: `run` once for each seed, `combine`, then show."""

    name: ClassVar[str]
    title: ClassVar[str]
    version: ClassVar[int] = 1
    together: ClassVar[int] = 1
    needs_data: bool = False
    settings: Json
    seeds: Sequence[int] = (1,)
    runs: int = 1

    @abstractmethod
    def run(self, seed: int, data: Data) -> Json:
        """Return the part of the result that this seed gives, as JSON can hold it."""

    def run_together(self, seeds: Sequence[int], data: Data) -> list[Json]:
        return [self.run(seed, data) for seed in seeds]

    def combine(self, parts: Sequence[Json]) -> Json:
        if len(parts) != 1:
            raise ValueError(f"{self.name} has {len(parts)} parts and does not say how they combine")
        return parts[0]

    @abstractmethod
    def claims(self, result: Json) -> list[Claim]: ...

    def tables(self, result: Json) -> list[PaperTable]:
        return []

    def charts(self, result: Json) -> list[PaperFigure]:
        return []

    def costs(self, result: Json) -> list[str]:
        """Return, as sentences, what the sound version costs where the paper's is not sound."""
        return []

    def answers(self, kept: Json) -> list[Json]:
        """Return each claim on a kept result with its answer, and with that of each half of the seeds alone."""
        halves = [self.claims(half) for half in kept.get("halves", [])]
        return [
            {"claim": claim.text, "ours": claim.ours, "holds": claim.holds, "rule": claim.rule}
            | ({"halves": [half[place].holds for half in halves]} if halves else {})
            for place, claim in enumerate(self.claims(kept["result"]))
        ]

    @property
    def digest(self) -> str:
        """Fields a kept result must share with this experiment to be used again."""
        return settings_digest(self.name, self.version, self.settings, self.seeds)


def settings_digest(name: str, version: int, settings: Mapping[str, Any], seeds: Sequence[int]) -> str:
    text = json.dumps([name, version, dict(settings), list(seeds)], sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def cell(values: ArrayLike) -> Json:
    """Return the mean of independent runs with its standard error, as results keep it."""
    numbers = np.asarray(values, dtype=np.float64).ravel()
    spread = float(numbers.std(ddof=1)) if numbers.size > 1 else 0.0
    found = interval(float(numbers.mean()), spread / math.sqrt(numbers.size))
    return found | {"spread": spread, "runs": int(numbers.size)}


def interval(value: float, error: float) -> Json:
    return {"value": value, "error": error, "low": value - 4 * error, "high": value + 4 * error}


def agree(first: Json, second: Json, *, slack: float = 0.0) -> bool:
    """Say whether two cells of independent runs lie within four standard errors of their difference, plus `slack`."""
    error = math.hypot(first["error"], second["error"])
    return bool(abs(first["value"] - second["value"]) <= 4 * error + slack + 1e-12)


def shown(value: Json, digits: int = 3) -> str:
    return f"{value['value']:.{digits}f} ± {value['error']:.{digits}f}"


def banded_cells(label: str, x: Sequence[float], cells: Sequence[Json], style: Style = "line") -> PaperSeries:
    return PaperSeries(label, x, [at["value"] for at in cells], [4 * at["error"] for at in cells], style)
