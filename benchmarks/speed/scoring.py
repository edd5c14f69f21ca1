"""Score, screen and choose among rows on disk, against the time to copy them."""

import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.speed.timing import Line, best_seconds
from dpal.features.clipping import clip_rows
from learner.features.matrix import open_matrix, write_matrix
from learner.linear_model import LinearModel
from learner.strategies.bernoulli_screen import BernoulliScreen
from learner.strategies.random import RandomChoice
from learner.strategies.scoring import score_blocks
from learner.strategies.top_c import TopC
from learner.strategies.uncertainty import Uncertainty
from privacy.mechanisms.randomness import SecureRandom

PICKS = 1000
SCREEN_LIMIT, TOP_C_LIMIT, MEMORY_LIMIT_MIB = 1.5, 2.5, 64


def scoring_lines(n: int, dimension: int, repeats: int) -> list[Line]:
    """Time every way to choose, in turns with the copy that sets the scale."""
    rng = np.random.default_rng(1)
    model = LinearModel(rng.normal(size=(1, dimension)), np.zeros(1), ("no", "yes"))
    with tempfile.TemporaryDirectory() as folder:
        sizes = [len(part) for part in np.array_split(np.empty(n), max(1, n // 50_000))]
        blocks = (clip_rows(rng.normal(size=(size, dimension)), norm_bound=1.0) for size in sizes)
        X = open_matrix(write_matrix(Path(folder) / "x.npy", blocks, dimension=dimension).path)
        return measured(X, model, repeats)


def measured(X: np.ndarray, model: LinearModel, repeats: int) -> list[Line]:
    """Return a line of time for each choice, and one of memory for those that have a limit."""
    candidates = np.arange(len(X))
    target = np.empty_like(X)
    screen = BernoulliScreen(0.02, 0.005, threshold=0.95)
    runs: dict[str, Callable[[], object]] = {
        "copy": lambda: np.copyto(target, X),
        "score": lambda: sum(len(values) for values in score_blocks(X, model, candidates=candidates)),
        "score and screen": lambda: screen.decide(X, candidates, model, SecureRandom()),
        "top-c": lambda: TopC(0.25).query(X, candidates, model, PICKS, SecureRandom()),
        "uncertainty": lambda: Uncertainty().query(X, candidates, model, PICKS, SecureRandom()),
        "random choice": lambda: RandomChoice().query(X, candidates, None, PICKS, SecureRandom()),
    }
    limits = {"score": SCREEN_LIMIT, "score and screen": SCREEN_LIMIT, "top-c": TOP_C_LIMIT}
    took = best_seconds(runs, repeats)
    copied = took.pop("copy")
    size = f"{len(X):,} x {X.shape[1]} float32"
    lines = [
        Line(f"{name}, {size} / copy", seconds, copied, seconds / copied, limits.get(name))
        for name, seconds in took.items()
    ]
    for name in limits:
        extra = extra_mebibytes(runs[name])
        allowed = MEMORY_LIMIT_MIB
        lines.append(Line(f"{name}: extra memory", extra, allowed, extra / allowed, 1.0, unit="MiB"))
    return lines


def extra_mebibytes(run: Callable[[], object]) -> float:
    """Return the peak of traced allocations, in MiB."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20
