"""Entity F1: spans that are found exactly, with their type, beside those missed and those made up."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpal.spans.text import Span

# A type with fewer spans among the records is not judged.
FEWEST = 10
Z = 1.959964
# Spans of a text are right or wrong together, and a span with a wrong end is both missed and made up: sums over texts
# vary so much more than sums over single spans. SLURP has 1.4, texts with three spans each that are all right or all
# wrong about 3.
TOGETHER = 3.0
# Between wider ends a score says nothing.
WIDEST = 0.3
ANY = ""


@dataclass(frozen=True)
class Score:
    """Entity F1 with its 95 % interval over records; None where there are too few spans to say."""

    spans: int
    f1: float | None = None
    low: float | None = None
    high: float | None = None


def counted(
    truths: Sequence[Iterable[Span]], found: Sequence[Iterable[Span]], types: Sequence[str], *, most: int | None = None
) -> NDArray[np.int64]:
    """Return for each text and type how many spans are right, missed and made up, shape (n, n_types, 3).

    Of each text at most the first `most` spans of either side count.
    """
    numbers = {name: number for number, name in enumerate(types)}
    counts = np.zeros((len(truths), len(types), 3), dtype=np.int64)
    for record, (one, other) in enumerate(zip(truths, found, strict=True)):
        wanted, said = (set(sorted(_plain(spans))[:most]) for spans in (one, other))
        for place, part in enumerate((wanted & said, wanted - said, said - wanted)):
            for _start, _end, name in part:
                counts[record, numbers[name], place] += 1
    return counts


def _plain(spans: Iterable[Span]) -> list[tuple[int, int, str]]:
    return [(span.start, span.end, span.type) for span in spans]


def f1_of(right: float, missed: float, made_up: float) -> float:
    return 2 * right / max(2 * right + missed + made_up, 1.0)


def score(counts: NDArray[np.int64]) -> Score:
    """Return the score of counts of texts, shape (n, 3).

    Notes
    -----
    F1 is a ratio of sums over texts, so its standard error is that of its linearisation.
    """
    right, missed, made_up = counts.sum(axis=0).tolist()
    if right + missed < FEWEST:
        return Score(right + missed)
    value, weights = f1_of(right, missed, made_up), counts @ np.array([2, 1, 1])
    apart = 2 * counts[:, 0] - value * weights
    error = Z * math.sqrt(float((apart**2).sum())) / float(weights.sum())
    return Score(right + missed, value, max(0.0, value - error), min(1.0, value + error))


def noisy_score(right: float, missed: float, made_up: float, *, scale: float) -> Score:
    """Return the score of counts that have Gaussian noise of `scale` each, None where its interval is too wide.

    Notes
    -----
    F1 is linearised in the three counts. Their noise is known; as counts of spans they vary by `TOGETHER` times their
    own size, which is theirs over texts where a text's spans are right or wrong together.
    """
    right, missed, made_up = (max(count, 0.0) for count in (right, missed, made_up))
    wrong, total = missed + made_up, 2 * right + missed + made_up
    if right + missed < FEWEST:
        return Score(round(right + missed))
    value, by_right, by_wrong = f1_of(right, missed, made_up), 2 * wrong / total**2, 2 * right / total**2
    sampled = TOGETHER * (by_right**2 * right + by_wrong**2 * wrong)
    noise = scale**2 * (by_right**2 + 2 * by_wrong**2)
    error = Z * math.sqrt(sampled + noise)
    low, high = max(0.0, value - error), min(1.0, value + error)
    return Score(round(right + missed)) if 2 * error > WIDEST else Score(round(right + missed), value, low, high)


def scores(counts: NDArray[np.int64], types: Sequence[str]) -> dict[str, Score]:
    """Return the score of all types together, under the empty name, and of each."""
    return {ANY: score(counts.sum(axis=1))} | {name: score(counts[:, place]) for place, name in enumerate(types)}
