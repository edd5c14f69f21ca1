from typing import Any

import numpy as np

from learner.papers.experiment import ClaimVerdict, Json
from learner.papers.ghassemi_curves import GeneratedCurves, spaced


def claims_of(gap: float, scatter: float) -> dict[str, ClaimVerdict]:
    """Return the answers where FLSW errs by `gap` more than FLMB in runs that differ by `scatter` otherwise."""
    experiment = GeneratedCurves(small=True)
    experiment.settings = experiment.settings | {"steps": 4_000}
    checkpoints = len(spaced(4_000))
    rng = np.random.default_rng(5)

    def part() -> Json:
        # A stream's luck is common to all designs and far larger than what lies between them.
        luck = rng.normal(0.3, 0.1, size=(10, 1))
        made: dict[str, Any] = {}
        for name in experiment.designs:
            errors = luck + scatter * rng.normal(size=(10, checkpoints)) + gap * name.startswith("FLSW")
            labels = np.tile(np.linspace(5, 2_000, checkpoints), (10, 1))
            made[name] = {"errors": errors.tolist(), "labels": labels.tolist()}
        return made | {"dperm": [0.2, 0.21], "non-private batch": [0.1, 0.11], "majority": 0.5}

    found = experiment.combine([part() for _ in range(20)])
    return {claim.text: claim.holds for claim in experiment.claims(found)}


PER_LABEL = "FLMB errs less than FLSW for the same number of labels."


def test_a_small_gap_in_the_same_runs_is_seen_beneath_their_luck() -> None:
    assert claims_of(0.01, 0.01)[PER_LABEL] is True
    assert claims_of(-0.01, 0.01)[PER_LABEL] is False


def test_no_gap_is_not_decided() -> None:
    assert claims_of(0.0, 0.01)[PER_LABEL] is None


def test_screens_that_differ_by_luck_alone_are_as_good_as_each_other() -> None:
    answers = claims_of(0.0, 0.01)
    assert answers["The difference between Bernoulli and exponential selection is negligible."] is True
