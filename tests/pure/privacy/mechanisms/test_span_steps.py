"""Noisy gradients of a chain: each record moves a step by its own clipped gradient and nothing else."""

import itertools

import numpy as np
import pytest

from dpal.spans.crf import TRANSITION
from dpal.spans.features import FEATURE_NORM, FEATURE_STEPS
from dpal.spans.text import MAX_TOKENS
from privacy.accounting.steps import SpanStepsEvent
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom
from privacy.mechanisms.span_steps import NoisySpanSteps, TaggedRecords, right_records, rounding_slack

QUIET = 1e-6
TAGS, FEATURES = 3, 5


def event_of(**changes):
    values = {
        "steps": 3,
        "dimension": FEATURES + TAGS,
        "n_classes": TAGS,
        "norm_bound": 1.0,
        "residual_bound": 0.5,
        "sigma": QUIET,
        "count_sigma": 1.0,
    }
    return SpanStepsEvent(**(values | changes))


def records_of(rng, count, longest=MAX_TOKENS):
    lengths = rng.integers(0, longest + 1, size=count)
    lengths[: min(count, 1)] = longest
    rows = rng.normal(size=(lengths.sum(), FEATURES))
    scale = np.repeat(rng.choice([0.001, 0.5, 1.0], size=count), lengths) * FEATURE_NORM
    rows *= (scale / np.linalg.norm(rows, axis=1))[:, None]
    features = np.trunc(rows * FEATURE_STEPS * (1 - 1e-9)).astype(np.int16)
    return TaggedRecords(features, lengths, rng.integers(0, TAGS, size=len(rows)))


def some_of(records, which):
    ends = np.concatenate([[0], np.cumsum(records.lengths)])
    places = np.concatenate([np.arange(ends[one], ends[one + 1]) for one in which]).astype(int)
    return TaggedRecords(records.features[places], records.lengths[list(which)], records.tags[places])


def gradient_of(records, weights, event=None):
    return NoisySpanSteps(records, event or event_of(), rng=SimulationRandom(1)).release(weights)


def by_hand(features, tags, weights):
    """Return the gradient of one record by running over every sequence of tags."""
    emissions, transitions = features @ weights[:, :FEATURES].T, TRANSITION * weights[:, FEATURES:].T

    def counted(sequence):
        found = np.zeros((TAGS, FEATURES + TAGS))
        for place, tag in enumerate(sequence):
            found[tag, :FEATURES] += features[place]
            if place:
                found[tag, FEATURES + sequence[place - 1]] += TRANSITION
        return found

    def score(sequence):
        pairs = sum(transitions[one, other] for one, other in itertools.pairwise(sequence))
        return sum(emissions[place, tag] for place, tag in enumerate(sequence)) + pairs

    every = list(itertools.product(range(TAGS), repeat=len(tags)))
    odds = np.exp([score(sequence) for sequence in every])
    return counted(tags) - sum(odd * counted(sequence) for odd, sequence in zip(odds / odds.sum(), every, strict=True))


def test_the_gradient_is_that_of_the_likelihood():
    rng = np.random.default_rng(1)
    for length in (1, 2, 5):
        records, weights = records_of(rng, 1, length), rng.normal(size=(TAGS, FEATURES + TAGS))
        wanted = by_hand(records.features / FEATURE_STEPS, tuple(records.tags), np.rint(weights * 2**16) / 2**16)
        found = gradient_of(records, weights, event_of(residual_bound=1e4))
        assert np.abs(found - wanted).max() < 1e-3


def test_empirical_sensitivity():
    """400 records at small and large weights: none moves a step by more than is charged, and some nearly reach it."""
    rng, event = np.random.default_rng(20_261_130), event_of()
    moved = []
    for _place in range(400):
        weights = rng.normal(size=(TAGS, FEATURES + TAGS)) * rng.choice([0.0, 0.1, 3.0, 50.0])
        moved.append(np.linalg.norm(gradient_of(records_of(rng, 1), weights)))
    assert max(moved) <= event.residual_bound + 20 * QUIET
    assert max(moved) >= event.residual_bound - 2 * rounding_slack(TAGS)


def test_a_record_beside_others_moves_by_its_own_part_alone():
    """Scores do not depend on the records around, so neither do rounded residuals: sums differ by one part exactly."""
    rng = np.random.default_rng(3)
    records, weights = records_of(rng, 300), rng.normal(size=(TAGS, FEATURES + TAGS)) * 5
    everybody = gradient_of(records, weights)
    for left_out in (0, 1, 150, 299):
        most = gradient_of(some_of(records, [one for one in range(300) if one != left_out]), weights)
        one = gradient_of(some_of(records, [left_out]), weights)
        assert np.abs(everybody - most - one).max() < 60 * QUIET
    shuffled = gradient_of(some_of(records, rng.permutation(300)), weights)
    assert np.abs(everybody - shuffled).max() < 30 * QUIET


def test_tokens_behind_a_record_and_empty_records_count_for_nothing():
    rng = np.random.default_rng(4)
    records, weights = records_of(rng, 2, 7), rng.normal(size=(TAGS, FEATURES + TAGS))
    padded = TaggedRecords(records.features, np.concatenate([[0], records.lengths, [0, 0]]), records.tags)
    assert np.abs(gradient_of(records, weights) - gradient_of(padded, weights)).max() < 30 * QUIET
    nothing = TaggedRecords(np.zeros((0, FEATURES), np.int16), np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert np.abs(gradient_of(nothing, weights)).max() < 30 * QUIET


def test_a_record_counts_by_itself_alone_as_right_or_not():
    rng = np.random.default_rng(6)
    records, models = records_of(rng, 200, 4), [rng.normal(size=(TAGS, FEATURES + TAGS)) * by for by in (0.1, 5.0)]
    together = right_records(records, models)
    alone = np.array([right_records(some_of(records, [one]), models) for one in range(200)])
    assert set(np.unique(alone)) == {0, 1}
    assert (alone.sum(axis=0) == together).all()
    assert 0 < together.min() < 200


def test_no_step_beyond_those_paid_for():
    noisy = NoisySpanSteps(records_of(np.random.default_rng(1), 5), event_of(steps=2), rng=SimulationRandom(1))
    weights = np.zeros((TAGS, FEATURES + TAGS))
    for _step in range(2):
        noisy.release(weights)
    with pytest.raises(ValueError, match="only 2 steps"):
        noisy.release(weights)


@pytest.mark.parametrize(
    ("features", "lengths", "tags"),
    [
        (np.full((1, FEATURES), 2**14), [1], [0]),
        (np.zeros((1, FEATURES)), [1], [TAGS]),
        (np.zeros((1, FEATURES)), [1], [-1]),
        (np.zeros((1, FEATURES + 1)), [1], [0]),
        (np.zeros((33, FEATURES)), [33], [0] * 33),
        (np.zeros((2, FEATURES)), [1], [0, 0]),
    ],
)
def test_records_that_were_not_declared_are_refused(features, lengths, tags):
    with pytest.raises(ValueError):
        NoisySpanSteps(
            TaggedRecords(features.astype(np.int16), np.array(lengths), np.array(tags)),
            event_of(),
            rng=SimulationRandom(1),
        )


def test_a_clip_that_rounding_could_pass_is_refused():
    with pytest.raises(ValueError, match="too many"):
        NoisySpanSteps(records_of(np.random.default_rng(1), 1), event_of(residual_bound=1e-3), rng=SimulationRandom(1))


def test_secure_noise_is_new_each_time():
    records, weights = records_of(np.random.default_rng(1), 2), np.zeros((TAGS, FEATURES + TAGS))
    first, second = (NoisySpanSteps(records, event_of(sigma=2.0), rng=SecureRandom()).release(weights) for _ in "ab")
    assert (first != second).all()
