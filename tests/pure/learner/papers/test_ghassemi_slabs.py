import numpy as np

from learner.papers.experiment import ClaimVerdict
from learner.papers.ghassemi_curves import LOW_RATE, Slabs


def answers(shrinking_power: float, harm: float) -> list[ClaimVerdict]:
    experiment = Slabs(small=True)
    steps = np.array(experiment.iterations, dtype=float)
    rng = np.random.default_rng(2)

    def part() -> dict[str, dict[str, list[list[float]]]]:
        made = {}
        for name in experiment.designs:
            shrinks = name.endswith("shrinking")
            labels = LOW_RATE * steps**shrinking_power if shrinks else 0.7 * steps
            scatter = 0.002 * rng.normal(size=(10, len(steps)))
            made[name] = {
                "errors": (0.2 + harm * shrinks + scatter).tolist(),
                "labels": (labels * (1 + 0.01 * rng.normal(size=(10, 1)))).tolist(),
            }
        return made

    return [claim.holds for claim in experiment.claims(experiment.combine([part() for _ in range(20)]))]


def test_a_line_is_told_from_a_power_and_harm_from_none() -> None:
    assert answers(1.0, 0.0) == [True, False, True, False]
    assert answers(0.7, 0.05) == [True, True, False, True]


def test_harm_of_just_the_bound_is_not_decided() -> None:
    assert answers(1.0, 0.02)[2:] == [None, None]
