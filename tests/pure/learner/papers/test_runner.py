import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from learner.papers import catalogue, runner
from learner.papers.experiment import (
    Claim,
    Data,
    Experiment,
    Panel,
    Paper,
    PaperFigure,
    PaperSeries,
    PaperTable,
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
