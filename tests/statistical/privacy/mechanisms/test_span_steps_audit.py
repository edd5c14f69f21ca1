"""Gradients of a chain have the noise they are charged for; an audit finds the twin that clips tokens one by one.

Every bound holds with probability 0.9999, so a sound mechanism fails once in 10,000 seeds.
"""

import os

import numpy as np
import pytest

from dpal.spans.features import FEATURE_STEPS
from dpal.spans.text import MAX_TOKENS
from privacy.accounting.steps import SpanStepsEvent
from privacy.evidence import gaussian_audit, one_by_one
from privacy.mechanisms import span_steps
from privacy.mechanisms.randomness import SimulationRandom
from privacy.mechanisms.span_steps import NoisySpanSteps, TaggedRecords

MORE = int(os.environ.get("DPAL_EVIDENCE_TRIALS", "1"))
TRIALS, FEW = 2_000 * MORE, 300 * MORE
CLIP, SIGMA, MU = 0.5, 0.5, 1.0
EVENT = SpanStepsEvent(1, 3, 2, 1.0, CLIP, SIGMA, 1e3)
WEIGHTS = np.zeros((2, 3))
# Thirty-two tokens of a text, all of one type: each token alone is longer than the clip.
RECORD = TaggedRecords(
    np.full((MAX_TOKENS, 1), 2 * FEATURE_STEPS, dtype=np.int16), np.array([MAX_TOKENS]), np.ones(MAX_TOKENS, np.int64)
)
NOBODY = TaggedRecords(RECORD.features[:0], RECORD.lengths[:0], RECORD.tags[:0])
pytestmark = pytest.mark.statistical


def audited(trials: int) -> float:
    """Return the least ratio that one record's presence shows, by the likelihood ratio of one step."""
    quiet = SpanStepsEvent(1, 3, 2, 1.0, CLIP, 1e-6, 1e3)
    moved = NoisySpanSteps(RECORD, quiet, rng=SimulationRandom(1)).release(WEIGHTS)

    def ratio(records: TaggedRecords, rng: SimulationRandom) -> float:
        return float((NoisySpanSteps(records, EVENT, rng=rng).release(WEIGHTS) * moved).sum())

    options = {"trials": trials, "confidence": 0.9999, "rng": SimulationRandom(20_261_130)}
    return gaussian_audit(one_by_one(ratio), RECORD, NOBODY, **options).mu_lower_bound


@pytest.mark.slow
def test_one_record_against_none() -> None:
    assert 0.2 * MU < audited(TRIALS) <= MU


def test_a_twin_that_clips_per_token_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin brings each token, not their sum, below the clip: up to 32 times too little noise."""

    def longest_token(residuals: np.ndarray, moves: np.ndarray, products: np.ndarray) -> np.ndarray:
        own = np.einsum("ntt->nt", products).T
        return ((residuals**2).sum(axis=1) * own).max(axis=0)

    monkeypatch.setattr(span_steps, "_squares", longest_token)
    assert audited(FEW) > 2 * MU


@pytest.mark.parametrize(("factor", "accepted"), [(1.0, True), (1.01, False), (0.99, False)])
def test_noise_variance(factor: float, accepted: bool) -> None:
    """Seeded, 4.2 sigma: false alarm 3e-5; a scale 1 % off is 6 or more away."""
    event = SpanStepsEvent(1, 900, 450, 1.0, 2.0, 3.0 * factor, 5.0)
    nothing = TaggedRecords(np.zeros((0, 450), np.int16), np.zeros(0, np.int64), np.zeros(0, np.int64))
    draws = NoisySpanSteps(nothing, event, rng=SimulationRandom(7)).release(np.zeros((450, 900))) / 3.0
    z_score = ((draws**2).mean() - 1) * np.sqrt(draws.size / 2)
    assert (abs(z_score) < 4.2) == accepted
