import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from learner.papers.catalogue import PAPERS, find_experiment, load_paper
from learner.papers.experiment import Data, Experiment, agree
from learner.papers.runner import Reproduction

RESULTS = Path(__file__).parents[4] / "docs" / "results"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As the command's processes do: threads that wait for each other are slow on a busy machine."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", PAPERS)
def test_the_small_version_runs_without_data(name: str, tmp_path: Path) -> None:
    Reproduction(output=tmp_path, data=Data(), small=True, processes=1, say=lambda line: None).reproduce([name])
    page = (tmp_path / f"{name}.md").read_text()
    assert "Not run." not in page
    assert all(experiment.title in page for experiment in load_paper(name, small=True).experiments)
    assert name == "zhang2018" or list((tmp_path / name).glob("*.svg"))


@pytest.mark.parametrize("name", PAPERS)
def test_published_results_come_from_the_experiments_as_they_are(name: str) -> None:
    """No kept result was made with other settings, seeds or code versions than the ones a reader would run."""
    for experiment in load_paper(name, small=False).experiments:
        kept = json.loads((RESULTS / name / f"{experiment.name}.json").read_text())
        assert kept["settings_digest"] == experiment.digest
        found = [(claim.text, claim.ours, claim.holds) for claim in experiment.claims(kept["result"])]
        assert found == [(claim["claim"], claim["ours"], claim["holds"]) for claim in kept["claims"]]


@pytest.mark.parametrize(
    ("paper", "names"),
    [
        (
            "ghassemi2016",
            {"batch_sizes", "curves_generated", "curves_kdd", "curves_mnist", "slabs"},
        ),
        ("zhang2018", {"full_information", "bandit", "information"}),
        ("feyisetan2019", {"gate_grid"}),
    ],
)
def test_no_half_of_the_seeds_contradicts_a_published_answer(paper: str, names: set[str]) -> None:
    """Twenty seeds at least; a half may leave open what the whole decides, but none says the opposite."""
    for name in names:
        kept = json.loads((RESULTS / paper / f"{name}.json").read_text())
        assert len(kept["seeds"]) >= 20, name
        for claim in kept["claims"]:
            assert not {True, False} <= {claim["holds"], *claim["halves"]}, (name, claim["claim"])


def published(paper: str, name: str) -> tuple[Experiment, dict[str, Any]]:
    experiment = find_experiment(paper, name, small=False)
    kept: dict[str, Any] = json.loads((RESULTS / paper / f"{name}.json").read_text())
    experiment.settings = kept["settings"]
    return experiment, kept


@pytest.mark.statistical
def test_chaudhuri2008_a_cell_of_the_epsilon_curve() -> None:
    """Other seeds, one epsilon of the kept settings, four standard errors: false alarms below 1 in 10,000."""
    experiment, kept = published("chaudhuri2008", "epsilon_curve")
    place = kept["settings"]["epsilons"].index(0.02)
    experiment.settings = kept["settings"] | {"epsilons": [0.02], "draws": 2}
    parts = [experiment.run(seed, Data()) for seed in range(9_001, 9_007)]
    again = experiment.combine(parts)["separable"]
    for method in ("sensitivity", "objective_2008", "objective_2011"):
        cell = kept["result"]["separable"][method][place]
        apart = 4 * np.hypot(again[method][0]["error"], cell["error"])
        assert abs(again[method][0]["value"] - cell["value"]) <= apart
    assert again["sensitivity"][0]["low"] > kept["result"]["separable"]["objective_2008"][place]["value"]


@pytest.mark.slow
@pytest.mark.statistical
def test_ghassemi2016_a_curve_of_the_generated_data() -> None:
    """Other seeds, the kept settings, four standard errors for six cells: false alarms below 1 in 1,000."""
    experiment, kept = published("ghassemi2016", "curves_generated")
    experiment.settings = kept["settings"] | {"baseline_runs_per_seed": 1}
    again = experiment.combine([experiment.run(seed, Data()) for seed in range(901, 909)])
    for name in ("FLMB bernoulli", "FLSW exponential", "ours"):
        for place in (1, len(kept["result"]["labels"]) - 1):
            first, second = (found["curves"][name]["at_labels"][place] for found in (kept["result"], again))
            assert agree(first, second)
    assert not agree(
        kept["result"]["curves"]["FLMB bernoulli"]["at_labels"][1],
        again["curves"]["immediate bernoulli"]["at_labels"][1],
    )


def test_ghassemi2016_the_exponential_screen_costs_more_than_stated() -> None:
    experiment, kept = published("ghassemi2016", "screen_costs")
    assert experiment.run(1, Data())["exponential"]["screen"] == pytest.approx(1.1711, abs=5e-5)
    assert [claim["holds"] for claim in kept["claims"]] == [True, False, False, True]
