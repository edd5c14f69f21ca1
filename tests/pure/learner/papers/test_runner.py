import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from learner.papers import catalogue, runner
from learner.papers.catalogue import PAPERS, find_experiment, load_paper
from learner.papers.experiment import (
    Claim,
    Data,
    Experiment,
    Panel,
    Paper,
    PaperFigure,
    PaperSeries,
    PaperTable,
    agree,
    cell,
)
from learner.papers.runner import Reproduction

CALLS: list[int] = []


class Coins(Experiment):
    name = "coins"
    title = "Share of heads"

    def __init__(self, flips: int) -> None:
        self.settings = {"flips": flips}
        self.seeds = (1, 2, 3)
        self.runs = 3

    def run(self, seed: int, data: Data) -> dict[str, Any]:
        CALLS.append(seed)
        return {"heads": float(np.random.default_rng(seed).integers(0, 2, size=self.settings["flips"]).mean())}

    def combine(self, parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {"share": cell([part["heads"] for part in parts])}

    def claims(self, result: dict[str, Any]) -> list[Claim]:
        near = abs(result["share"]["value"] - 0.5) < 0.2
        return [Claim("Coins are fair.", f"{result['share']['value']:.2f}", near, "within .2 of one half")]

    def tables(self, result: dict[str, Any]) -> list[PaperTable]:
        return [PaperTable("Shares", ("what", "share"), [("heads", f"{result['share']['value']:.2f}")])]

    def charts(self, result: dict[str, Any]) -> list[PaperFigure]:
        curve = PaperSeries("heads", [1, 2], [result["share"]["value"], 0.5], [0.1, 0.1])
        bars = PaperSeries("bars", [0, 1], [1, 2], style="bars")
        dots = PaperSeries("dots", [1, 10], [1, 2], style="points")
        panels = [
            Panel([curve], "flips", "share"),
            Panel([bars, bars], "side", "count", x_names=("heads", "tails")),
            Panel([dots], "a", "b", "title", x_log=True, y_log=True),
        ]
        return [PaperFigure("shares", "Shares <of> heads", "Heads & tails lie near one half.", panels)]

    def costs(self, result: dict[str, Any]) -> list[str]:
        return ["A fair coin costs nothing."]


class Folder(Coins):
    """Needs a file."""

    name = "folder"
    title = "From the folder"
    needs_data = True

    def run(self, seed: int, data: Data) -> dict[str, Any]:
        data.path("coins.csv")
        return super().run(seed, data)


@pytest.fixture
def flips(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """Make a paper of one experiment the only one, with a number of flips that a test may change."""
    settings = {"flips": 400}
    module = ModuleType("learner.papers.bernoulli1713")
    module.paper = lambda small: Paper(  # type: ignore[attr-defined]
        "bernoulli1713", "Bernoulli 1713", ["The art of conjecturing."], [Coins(settings["flips"]), Folder(10)]
    )
    monkeypatch.setitem(sys.modules, "learner.papers.bernoulli1713", module)
    for place in (catalogue, runner):
        monkeypatch.setattr(place, "PAPERS", ("bernoulli1713",))
    CALLS.clear()
    return settings


def reproduction(output: Path, lines: list[str], folder: Path | None = None) -> Reproduction:
    return Reproduction(output=output, data=Data(folder), small=True, processes=1, say=lines.append)


@pytest.mark.slow
def test_a_finished_experiment_is_not_run_again_unless_its_settings_changed(
    tmp_path: Path, flips: dict[str, int]
) -> None:
    lines: list[str] = []
    reproduction(tmp_path, lines).reproduce(["bernoulli1713"])
    assert CALLS == [1, 2, 3]
    assert any("chunk 3 of 3" in line for line in lines)
    first = (tmp_path / "bernoulli1713" / "coins.json").read_bytes()
    reproduction(tmp_path, lines).reproduce(["bernoulli1713"])
    assert CALLS == [1, 2, 3]
    assert (tmp_path / "bernoulli1713" / "coins.json").read_bytes() == first
    flips["flips"] = 500
    reproduction(tmp_path, lines).reproduce(["bernoulli1713"])
    assert CALLS == [1, 2, 3] * 2


@pytest.mark.slow
def test_an_interrupted_experiment_goes_on_where_it_stopped(
    tmp_path: Path, flips: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tmp_path / "whole"
    reproduction(whole, []).reproduce(["bernoulli1713"])
    CALLS.clear()
    run = Coins.run

    def stops_at_two(self: Coins, seed: int, data: Data) -> dict[str, Any]:
        if seed == 2:
            raise KeyboardInterrupt
        return run(self, seed, data)

    monkeypatch.setattr(Coins, "run", stops_at_two)
    with pytest.raises(KeyboardInterrupt):
        reproduction(tmp_path, []).reproduce(["bernoulli1713"])
    monkeypatch.setattr(Coins, "run", run)
    reproduction(tmp_path, []).reproduce(["bernoulli1713"])
    assert CALLS == [1, 2, 3]
    results = [
        json.loads((place / "bernoulli1713" / "coins.json").read_text())["result"] for place in (tmp_path, whole)
    ]
    assert results[0] == results[1]
    assert not list((tmp_path / ".parts" / "bernoulli1713").iterdir())


def test_the_page_shows_claim_figure_answer_settings_seeds_and_cost(tmp_path: Path, flips: dict[str, int]) -> None:
    reproduction(tmp_path, []).reproduce(["bernoulli1713"])
    page = (tmp_path / "bernoulli1713.md").read_text()
    for text in (
        "Coins are fair.",
        "| yes |",
        "within .2",
        "[Settings and figures](bernoulli1713/coins.json)",
        "Seeds 1, 2, 3",
        "costs nothing",
        "Not run.",
    ):
        assert text in page
    assert "| [bernoulli1713](bernoulli1713.md) | Share of heads | 1 | 0 | 0 |" in (tmp_path / "README.md").read_text()
    assert str(tmp_path) not in page


@pytest.mark.slow
def test_a_rule_that_changed_is_applied_to_the_kept_result(
    tmp_path: Path, flips: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    reproduction(tmp_path, []).reproduce(["bernoulli1713"])
    CALLS.clear()
    monkeypatch.setattr(Coins, "claims", lambda self, result: [Claim("Coins are gold.", "none", False, "weight")])
    reproduction(tmp_path, []).reproduce(["bernoulli1713"])
    kept = json.loads((tmp_path / "bernoulli1713" / "coins.json").read_text())
    assert (CALLS, [claim["claim"] for claim in kept["claims"]]) == ([], ["Coins are gold."])
    assert "Coins are gold." in (tmp_path / "bernoulli1713.md").read_text()


def test_what_is_not_decided_is_said(tmp_path: Path, flips: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Coins, "claims", lambda self, result: [Claim("Coins are fair.", "none", None, "weight")])
    reproduction(tmp_path, []).reproduce(["bernoulli1713"])
    assert "| Coins are fair. | none | not decided | weight |" in (tmp_path / "bernoulli1713.md").read_text()
    assert "| [bernoulli1713](bernoulli1713.md) | Share of heads | 0 | 0 | 1 |" in (tmp_path / "README.md").read_text()


def test_each_half_of_twenty_seeds_answers_alone(
    tmp_path: Path, flips: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heads alone in the second half: the whole lies between, and the kept figures say what the halves say."""
    monkeypatch.setattr(Coins, "run", lambda self, seed, data: {"heads": 0.5 if seed <= 10 else 1.0})
    created = Coins.__init__

    def of_twenty_seeds(self: Coins, flips: int) -> None:
        created(self, flips)
        self.seeds = range(1, 21)

    monkeypatch.setattr(Coins, "__init__", of_twenty_seeds)
    reproduction(tmp_path, []).reproduce(["bernoulli1713"])
    kept = json.loads((tmp_path / "bernoulli1713" / "coins.json").read_text())
    assert kept["claims"][0]["halves"] == [True, False]
    assert [half["share"]["value"] for half in kept["halves"]] == [0.5, 1.0]
    page = (tmp_path / "bernoulli1713.md").read_text()
    assert "| Coins are fair. | 0.75 | no | within .2 of one half |" in page


@pytest.mark.slow
def test_figures_are_the_same_bytes_and_have_words(tmp_path: Path, flips: dict[str, int]) -> None:
    for folder in ("one", "two"):
        reproduction(tmp_path / folder, []).reproduce(["bernoulli1713"])
    one, two = ((tmp_path / folder / "bernoulli1713" / "shares.svg").read_bytes() for folder in ("one", "two"))
    assert one == two
    tree = ElementTree.fromstring(one)
    space = "{http://www.w3.org/2000/svg}"
    assert (tree.findtext(f"{space}title"), tree.findtext(f"{space}desc")) == (
        "Shares <of> heads",
        "Heads & tails lie near one half.",
    )


@pytest.mark.slow
def test_two_processes_give_what_one_gives(tmp_path: Path) -> None:
    for processes in (1, 2):
        Reproduction(tmp_path / str(processes), Data(), True, processes, lambda line: None).reproduce(["chaudhuri2008"])
    one, two = (
        json.loads((tmp_path / name / "chaudhuri2008" / "table.json").read_text())["result"] for name in ("1", "2")
    )
    assert one == two


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
