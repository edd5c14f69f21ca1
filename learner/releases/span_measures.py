"""Measures of a model of spans on public texts: entity F1 of all types and of each, and how sure it is."""

from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np

from dpal.recompute.transcript import Transcript
from dpal.spans.model import FoundSpan
from dpal.spans.scoring import Score, counted, noisy_score, score
from dpal.spans.text import Span
from learner.releases.evaluation import SEED, binned_counts, binned_measures, counted_share, f1_measures

NO_MATRIX = np.zeros((0, 0), dtype=np.int64)
UNSURE = {"calibration_error": {"value": 0.0, "low": 0.0, "high": 0.0}, "reliability": []}


class SpanCounts(TypedDict):
    """Noisy counts of the spans of held-out texts, and the deviation of the noise on each."""

    right: float
    missed: float
    spurious: float
    scale: float


def counts_in(transcript: Transcript) -> SpanCounts | None:
    """Return the counts of an evaluation that a training paid for; None without one."""
    for query, _sensitivity, scale, answer in transcript.answers:
        if query == "span_counts":
            right, missed, spurious = (float(count) for count in answer)
            return {"right": right, "missed": missed, "spurious": spurious, "scale": scale}
    return None


def held_out_score(counts: SpanCounts) -> Score:
    """Return entity F1 on held-out texts from their noisy counts."""
    return noisy_score(counts["right"], counts["missed"], counts["spurious"], scale=counts["scale"])


def span_measures(
    truths: Sequence[Sequence[Span]], found: Sequence[Sequence[FoundSpan]], types: Sequence[str]
) -> tuple[int, dict[str, Any]]:
    """Return how many texts have all their spans and no other, and the measures as plain JSON values.

    Micro-F1 is entity F1; `f1` has that of each type, without a value where there are fewer than ten spans. Calibration
    is that of the spans that are found. What costs nothing is to find no span at all.
    """
    named = [[Span(span.start, span.end, span.type) for span in spans] for spans in found]
    counts = counted(truths, named, types)
    right, missed, made_up = counts.sum(axis=0).T
    without = sum(not spans for spans in truths)
    sure = np.array([span.score for spans in found for span in spans])
    true = [span in known for known, spans in zip(map(set, truths), named, strict=True) for span in spans]
    rng = np.random.default_rng(SEED)
    by_type = [score(counts[:, place]) for place in range(len(types))]
    return int((counts[:, :, 1:].sum(axis=(1, 2)) == 0).sum()), {
        **f1_measures(counts[:, :, 0], counts @ np.array([2, 1, 1]), rng),
        **(binned_measures(binned_counts(NO_MATRIX, sure, np.array(true)), rng) if true else UNSURE),
        "confusion": [],
        "constant": {"correct": without, "accuracy": without / len(truths), "micro_f1": 0.0, "macro_f1": 0.0},
        "recall": [counted_share(int(hit), int(hit + miss)) for hit, miss in zip(right, missed, strict=True)],
        "precision": [counted_share(int(hit), int(hit + extra)) for hit, extra in zip(right, made_up, strict=True)],
        "f1": [{"spans": one.spans, "value": one.f1, "low": one.low, "high": one.high} for one in by_type],
    }
