import numpy as np

from learner.papers.experiment import ClaimVerdict, Json
from learner.papers.zhang2018_information import LIPSCHITZ, POPULATIONS, UserInformation
from privacy.accounting.mutual_information import gaussian_mi


def answers(share: float) -> list[ClaimVerdict]:
    experiment = UserInformation(small=True)
    rng = np.random.default_rng(7)

    def near(bound: float) -> float:
        return bound * (share + 0.01 * rng.normal())

    def part() -> Json:
        bounds = [gaussian_mi(5, LIPSCHITZ, sigma) for sigma in experiment.settings["sigmas"]]
        return {
            "full": {"5": {name: [near(bound) for bound in bounds] for name in POPULATIONS}},
            "bandit": [near(experiment.bandit_bound(sigma)) for sigma in experiment.settings["bandit"]["sigmas"]],
        }

    return [claim.holds for claim in experiment.claims(experiment.combine([part() for _ in range(20)]))]


def test_an_estimate_on_its_bound_is_not_decided() -> None:
    assert answers(0.9)[:2] == [True, True]
    assert answers(1.0)[:2] == [None, None]
    assert answers(1.1)[:2] == [False, False]
