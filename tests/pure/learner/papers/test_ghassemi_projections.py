import numpy as np

from learner.papers.experiment import ClaimVerdict
from learner.papers.ghassemi_curves import spaced
from learner.papers.ghassemi_projections import Projections


def answer(rise: float) -> ClaimVerdict:
    experiment = Projections(small=True)
    length = len(spaced(experiment.settings["steps"]))
    rng = np.random.default_rng(4)

    def part() -> dict[str, dict[str, dict[str, list[list[float]]]]]:
        luck = rng.normal(0.2, 0.1, size=(10, 1))
        return {
            sample: {
                name: {
                    "errors": (
                        luck + 0.01 * rng.normal(size=(10, length)) + rise * (sample == "mnist_random")
                    ).tolist(),
                    "labels": np.ones((10, length)).tolist(),
                }
                for name in ("FLMB", "ours")
            }
            for sample in experiment.samples
        }

    return experiment.claims(experiment.combine([part() for _ in range(20)]))[0].holds


def test_a_rise_is_judged_in_the_same_runs() -> None:
    assert [answer(rise) for rise in (0.03, 0.05, 0.07)] == [True, None, False]
