"""Entity F1 with intervals: by hand, by simulation, and from noisy sums."""

import numpy as np
import pytest

from dpal.spans.scoring import ANY, FEWEST, WIDEST, counted, f1_of, noisy_score, score, scores
from dpal.spans.text import Span

TYPES = ("date", "person")


def test_only_spans_that_are_equal_count_as_right() -> None:
    truth = [Span(0, 4, "date"), Span(5, 9, "person")]
    found = [Span(0, 4, "date"), Span(5, 8, "person"), Span(10, 12, "date")]
    counts = counted([truth, []], [found, []], TYPES)
    assert counts.tolist() == [[[1, 0, 1], [0, 1, 1]], [[0, 0, 0], [0, 0, 0]]]
    assert f1_of(*counts.sum(axis=(0, 1)).tolist()) == pytest.approx(2 * 1 / (2 * 1 + 1 + 2))


def test_of_a_text_so_many_count() -> None:
    many = [Span(2 * place, 2 * place + 1, "date") for place in range(20)]
    assert counted([many], [[]], TYPES, most=8).sum() == 8
    assert counted([many], [many], TYPES, most=8)[0, 0].tolist() == [8, 0, 0]


def test_few_spans_are_too_few_to_say() -> None:
    found = scores(np.array([[[FEWEST - 1, 0, 3], [FEWEST, 0, 0]]]), TYPES)
    assert found["date"].f1 is None
    assert found["person"].f1 == 1.0
    assert found[ANY].spans == 2 * FEWEST - 1


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Seeded: of 1,000 intervals of 95 %, 922 to 978 hold it unless the interval is wrong (false alarm 1e-4)."""
    rng = np.random.default_rng(20_261_130)
    right, missed, made_up = (rng.poisson(mean, size=(1_000, 400)) for mean in (0.5, 0.3, 0.2))
    truth, held, narrow = 2 * 0.5 / (2 * 0.5 + 0.3 + 0.2), 0, 0
    for run in range(1_000):
        found = score(np.stack([right[run], missed[run], made_up[run]], axis=1))
        assert found.f1 is not None
        assert found.low is not None
        assert found.high is not None
        held += found.low <= truth <= found.high
        # The broken twin is 20 % too narrow.
        narrow += abs(found.f1 - truth) <= 0.8 * (found.high - found.f1)
    assert 922 <= held <= 978
    assert narrow < 922


@pytest.mark.parametrize("scale", [3.0, 12.0])
def test_intervals_of_noisy_counts_hold_the_truth(scale: float) -> None:
    """Seeded: two of three texts' spans are right or wrong together, three a text; noise and texts are drawn anew."""
    rng = np.random.default_rng(20_261_201)
    truth, held, narrow = 2 * 0.7 / (2 * 0.7 + 0.3 + 0.3), 0, 0
    for _run in range(1_000):
        whole = 3 * rng.binomial(1, 0.7, size=200).sum()
        alone = rng.binomial(3, 0.7, size=100).sum()
        right = whole + alone
        noisy = np.array([right, 900 - right, 900 - right]) + scale * rng.normal(size=3)
        found = noisy_score(*noisy, scale=scale)
        assert found.f1 is not None
        assert found.low is not None
        assert found.high is not None
        held += found.low <= truth <= found.high
        # The broken twin is half as wide.
        narrow += abs(found.f1 - truth) <= 0.5 * (found.high - found.f1)
    assert held >= 922
    assert narrow < 922


def test_noise_that_hides_the_counts_leaves_too_few_to_say() -> None:
    assert noisy_score(60, 20, 20, scale=12.0).f1 is None
    assert noisy_score(-3.0, 5.0, 80.0, scale=1.0).f1 is None
    said = noisy_score(600, 200, 200, scale=12.0)
    assert said.spans == 800
    assert said.f1 == pytest.approx(0.75)
    assert said.low is not None
    assert said.high is not None
    assert said.high - said.low < WIDEST
