"""Version 0 of spans: what values and example sentences of each type are worth, at epsilon 0, before any label."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpal.recompute.span_crf import span_crf
from dpal.spans.features import SpanFeatures
from dpal.spans.text import Span
from learner.estimators.descriptions import MOST_FILLINGS, SLOT, ClassDescription
from learner.estimators.span_crf import tagged_records
from privacy.accounting.steps import SpanStepsEvent
from privacy.mechanisms.randomness import SimulationRandom
from privacy.mechanisms.session import MeasuringSession
from privacy.mechanisms.span_steps import span_queries

# Public examples need no noise; what little the mechanism must have is far below a feature's grid.
SIGMA, STEPS, CLIP = 1e-4, 20, 0.5


def span_examples(types: Sequence[str], descriptions: Mapping[str, ClassDescription]) -> list[tuple[str, Span]]:
    """Return each type's example texts with their span: the value of a slot, or all of an example without one."""
    found: list[tuple[str, Span]] = []
    for name in types:
        described = descriptions.get(name)
        for example in map(str.strip, described.examples if described else ()):
            assert described is not None
            slot = SLOT.search(example)
            if slot is None:
                found.append((example, Span(0, len(example), name)))
                continue
            before, after = SLOT.sub("", example[: slot.start()]), SLOT.sub("", example[slot.end() :])
            found += [
                (f"{before}{value}{after}", Span(len(before), len(before) + len(value), name))
                for value in map(str.strip, described.slots[slot.group(1)][:MOST_FILLINGS])
            ]
    return [(text, span) for text, span in found if span.start < span.end]


def span_version_zero(
    types: Sequence[str], descriptions: Mapping[str, ClassDescription], features: SpanFeatures
) -> NDArray[np.float64] | None:
    """Return the weights of version 0, shape (K, d + K); None where nobody wrote an example."""
    examples = span_examples(types, descriptions)
    if not examples:
        return None
    return fit_public([text for text, _span in examples], [(span,) for _text, span in examples], types, features)


def fit_public(
    texts: Sequence[str],
    spans: Sequence[Sequence[Span]],
    types: Sequence[str],
    features: SpanFeatures,
    *,
    prior: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the weights of the same estimator for public texts: without privacy, for they need none."""
    n_tags = len(types) + 1
    dimension = features.n_features + n_tags
    event = SpanStepsEvent(STEPS, dimension, n_tags, 1.0, CLIP, SIGMA, SIGMA)
    # A seed, so that everybody finds the same weights.
    queries = span_queries(tagged_records(texts, spans, types, features), event, rng=SimulationRandom(0))
    public: dict[str, Any] = {"steps": STEPS, "dimension": dimension, "n_classes": n_tags, "sigma": SIGMA}
    public["prior"] = None if prior is None else {"coef": prior}
    return span_crf(public, MeasuringSession(queries), lambda done, total: None).coef
