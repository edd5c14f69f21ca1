"""Ghassemi, Sarwate and Wright 2016: screened streams with noisy mini-batch updates; the list of its experiments."""

from learner.papers.experiment import Experiment, Paper
from learner.papers.ghassemi_curves import BatchSizes, GeneratedCurves, KddCurves, MnistCurves, Slabs
from learner.papers.ghassemi_screens import ScreenCosts

UNSOUND = (
    "`exponential`: the screen costs more than its lemma says, whose condition the paper's own setting breaks.",
    "`mnist_pca`: the projection is computed from the private pool and charged nothing.",
    "Step size and regularisation are chosen by looking at the error on private records and charged nothing; here "
    "too, for the paper's designs, which otherwise cost 2 for a replaced record, the sum of screen and update.",
)


def paper(*, small: bool) -> Paper:
    experiments: list[Experiment] = [ScreenCosts(), GeneratedCurves(small=small)]
    if not small:
        experiments += [KddCurves(small=small), MnistCurves(small=small)]
    experiments += [BatchSizes(small=small), Slabs(small=small)]
    return Paper(
        "ghassemi2016",
        "Ghassemi, Sarwate, Wright: Differentially private online active learning (2016)",
        UNSOUND,
        experiments,
    )
