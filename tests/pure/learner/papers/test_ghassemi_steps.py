import numpy as np

from learner.papers.experiment import ClaimVerdict
from learner.papers.ghassemi_curves import REGULARIZATION, STEP
from learner.papers.ghassemi_steps import StepSizes


def answer(best: float) -> ClaimVerdict:
    experiment = StepSizes(small=True)
    place = experiment.grid.index((STEP, REGULARIZATION))
    rng = np.random.default_rng(3)

    def part() -> dict[str, list[list[float]]]:
        errors = rng.normal(0.3, 0.1, size=10) + 0.005 * rng.normal(size=(len(experiment.grid), 10))
        errors[place - 1] -= best
        return {"generated": errors.tolist()}

    return experiment.claims(experiment.combine([part() for _ in range(20)]))[0].holds


def test_a_much_better_pair_is_found_and_the_luckiest_of_equals_is_none() -> None:
    assert [answer(best) for best in (0.0, 0.02, 0.05)] == [True, None, False]
