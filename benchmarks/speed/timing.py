"""Timings in turns, and one line of a report: ours, the peer, their ratio and its limit."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Line:
    """What was measured; `limit` bounds the ratio from above, or from below where `at_least` is set."""

    what: str
    ours: float
    peer: float
    ratio: float
    limit: float | None = None
    at_least: bool = False
    unit: str = "s"

    @property
    def kept(self) -> bool:
        """Whether the ratio keeps its limit."""
        if self.limit is None:
            return True
        return self.ratio >= self.limit if self.at_least else self.ratio <= self.limit

    def to_json(self) -> dict[str, Any]:
        """Return the line as plain values."""
        told = {name: None if value != value else value for name, value in asdict(self).items()}  # no NaN in JSON
        return {**told, "kept": self.kept}

    def __str__(self) -> str:
        wanted = "" if self.limit is None else f"{'>=' if self.at_least else '<='} {self.limit:g}"
        verdict = "" if self.limit is None else ("kept" if self.kept else "BROKEN")
        return f"{self.what:58}{self.ours:12.4g}{self.peer:12.4g} {self.unit:9}{self.ratio:9.3f}  {wanted:8}{verdict}"


HEADER = f"{'':58}{'ours':>12}{'peer':>12} {'':9}{'ratio':>9}  limit"


def best_seconds(runs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the shortest timing of each, taken in turns so that a busy machine is busy for all."""
    timings: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            timings[name].append(time.perf_counter() - start)
    return {name: min(values[1:]) for name, values in timings.items()}
