"""Every paper's small version runs from nothing, and one cell of each published page is what its settings give."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from learner.reproduce.catalogue import PAPERS, find_experiment, load_paper
from learner.reproduce.experiment import Data, Experiment
from learner.reproduce.runner import Reproduction

RESULTS = Path(__file__).parents[4] / "docs" / "results"


@pytest.mark.parametrize("name", PAPERS)
def test_the_small_version_runs_without_data(name: str, tmp_path: Path) -> None:
    Reproduction(output=tmp_path, data=Data(), small=True, processes=1, say=lambda line: None).reproduce([name])
    page = (tmp_path / f"{name}.md").read_text()
    assert "Not run." not in page
    assert all(experiment.title in page for experiment in load_paper(name, small=True).experiments)
    assert list((tmp_path / name).glob("*.svg"))


@pytest.mark.parametrize("name", PAPERS)
def test_published_results_come_from_the_experiments_as_they_are(name: str) -> None:
    """No kept result was made with other settings, seeds or code versions than the ones a reader would run."""
    for experiment in load_paper(name, small=False).experiments:
        kept = json.loads((RESULTS / name / f"{experiment.name}.json").read_text())
        assert kept["settings_digest"] == experiment.digest
        found = [(claim.text, claim.ours, claim.holds) for claim in experiment.claims(kept["result"])]
        assert found == [(claim["claim"], claim["ours"], claim["holds"]) for claim in kept["claims"]]


def published(paper: str, name: str) -> tuple[Experiment, dict[str, Any]]:
    """Return an experiment with the settings its kept JSON names, and that JSON."""
    experiment = find_experiment(paper, name, small=False)
    kept: dict[str, Any] = json.loads((RESULTS / paper / f"{name}.json").read_text())
    experiment.settings = kept["settings"]
    return experiment, kept


@pytest.mark.statistical
def test_chaudhuri2008_a_cell_of_the_epsilon_curve() -> None:
    """Other seeds, one epsilon of the kept settings, four standard errors: false alarms below 1 in 10,000."""
    experiment, kept = published("chaudhuri2008", "epsilon_curve")
    place = kept["settings"]["epsilons"].index(0.02)
    experiment.settings = kept["settings"] | {"epsilons": [0.02]}
    parts = [experiment.run(seed, Data()) for seed in range(9_001, 9_007)]
    again = experiment.combine(parts)["separable"]
    for method in ("sensitivity", "objective_2008", "objective_2011"):
        cell = kept["result"]["separable"][method][place]
        apart = 4 * np.hypot(again[method][0]["error"], cell["error"])
        assert abs(again[method][0]["value"] - cell["value"]) <= apart
    assert again["sensitivity"][0]["low"] > kept["result"]["separable"]["objective_2008"][place]["value"]
