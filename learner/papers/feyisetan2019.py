"""Feyisetan et al. 2019: k-anonymity after sampling in front of a crowd, on a drawn log; its experiments."""

from learner.papers.experiment import Paper
from learner.papers.feyisetan2019_gate import ContributorGate, EpsilonDelta
from learner.papers.feyisetan2019_grid import GateGrid
from learner.papers.feyisetan2019_log import LogShape, simulated_log


def paper(*, small: bool) -> Paper:
    shape, contributors = LogShape(small=small), ContributorGate(simulated_log, small=small)
    contributors.settings = {**shape.settings, **contributors.settings}
    return Paper(
        "feyisetan2019",
        "Feyisetan et al.: Privacy-preserving active learning on sensitive data for user intent classification (2019)",
        (
            "Sampling distinct queries and counting them on the full data: delta is at least beta.",
            "Deciding by a count-mean-min sketch, which may count too many.",
        ),
        (shape, GateGrid(small=small), EpsilonDelta(small=small), contributors),
    )
