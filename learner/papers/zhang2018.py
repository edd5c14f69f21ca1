"""Zhang and Venkitasubramaniam 2018: regret of noisy online gradient descent, and the promise of its noise."""

from learner.papers.experiment import Paper
from learner.papers.zhang2018_information import UserInformation
from learner.papers.zhang2018_regret import Bandit, FullInformationRegret


def paper(*, small: bool) -> Paper:
    return Paper(
        "zhang2018",
        "Zhang, Venkitasubramaniam: Mutual-information-private online gradient descent algorithm (2018)",
        (
            "Mutual information as the privacy of one user: it bounds a mean over users, while a rare one may be found "
            "out. A project shows it and is charged by differential privacy.",
        ),
        (FullInformationRegret(small=small), Bandit(small=small), UserInformation(small=small)),
    )
