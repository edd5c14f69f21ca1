"""A row is better only by more than the seeds' spread, and nowhere worse."""

import pytest

from learner.simulation.estimates import best_row


def point(mean: float, spread: float) -> dict[str, float]:
    return {"mean": mean, "low": mean - spread / 2, "high": mean + spread / 2}


STANDING = {"digits": point(0.8, 0.02), "made_up": point(0.6, 0.02)}


@pytest.mark.parametrize(
    ("row", "better"),
    [
        ({"digits": point(0.83, 0.02), "made_up": point(0.6, 0.02)}, True),
        # Less than the distance from worst to best, of either.
        ({"digits": point(0.81, 0.02), "made_up": point(0.61, 0.02)}, False),
        ({"digits": point(0.83, 0.04), "made_up": point(0.6, 0.02)}, False),
        # Better here and worse there.
        ({"digits": point(0.9, 0.02), "made_up": point(0.59, 0.02)}, False),
        (STANDING, False),
    ],
)
def test_a_row_is_better_by_more_than_the_spread_or_not_at_all(row: dict[str, dict[str, float]], better: bool) -> None:
    assert best_row([STANDING, row]) == (1 if better else None)


def test_of_several_the_best_is_marked_and_without_any_none() -> None:
    good, best = ({"digits": point(mean, 0.0), "made_up": point(0.6, 0.0)} for mean in (0.9, 0.95))
    assert best_row([STANDING, good, best, good]) == 2
    assert best_row([STANDING]) is None
    assert best_row([]) is None
    # A row that reached no release has nothing to compare.
    assert best_row([STANDING, {}]) is None
