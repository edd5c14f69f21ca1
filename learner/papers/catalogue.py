"""Papers by name; a module is loaded when it is asked for."""

import importlib

from learner.papers.experiment import Experiment, Paper

PAPERS: tuple[str, ...] = ("ghassemi2016", "zhang2018", "rane2019", "feyisetan2019", "chaudhuri2008")


def load_paper(name: str, *, small: bool) -> Paper:
    if name not in PAPERS:
        raise ValueError(f"paper must be one of {', '.join(PAPERS)}, got {name}")
    module = importlib.import_module(f"learner.papers.{name}")
    paper: Paper = module.paper(small=small)
    return paper


def find_experiment(paper: str, name: str, *, small: bool) -> Experiment:
    return next(entry for entry in load_paper(paper, small=small).experiments if entry.name == name)
