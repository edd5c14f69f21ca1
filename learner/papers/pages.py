"""Write one page a paper, and an index, from the kept JSON results."""

from collections.abc import Sequence
from pathlib import Path

from learner.papers.experiment import Experiment, Json, Paper, PaperFigure, PaperTable
from learner.papers.plots import save_chart

INDEX = "README.md"
# What follows this line of the index is written by hand.
BY_HAND = "\n## Tried and removed\n"
ANSWER = {True: "yes", False: "no", None: "not decided"}
DECIDED = "An answer is yes or no only where the whole interval of four standard errors says so."


def write_page(paper: Paper, results: dict[str, Json], output: Path) -> Path:
    lines = [f"# {paper.citation}", "", f"Made by `make reproduce PAPER={paper.name}`; do not edit.", ""]
    libraries = {_versions(kept) for kept in results.values()}
    shared = len(libraries) == 1
    if shared:
        lines += [f"Made with {min(libraries)}.", ""]
    if any("halves" in kept for kept in results.values()):
        lines += [DECIDED, ""]
    if paper.unsound:
        lines += ["Run here as published, without the guarantee it claims, and impossible to choose in a project:", ""]
        lines += [f"- {text}" for text in paper.unsound] + [""]
    for experiment in paper.experiments:
        kept = results.get(experiment.name)
        lines += [f"## {experiment.title}", ""]
        if kept is None:
            lines += ["Not run.", ""]
            continue
        lines += _section(experiment, kept, output / paper.name, "" if shared else f"; {_versions(kept)}")
    path = output / f"{paper.name}.md"
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return path


def write_index(papers: Sequence[tuple[Paper, dict[str, Json]]], output: Path) -> None:
    index = output / INDEX
    by_hand = "".join(index.read_text(encoding="utf-8").partition(BY_HAND)[1:]) if index.exists() else ""
    lines = [
        "# The five papers, reproduced",
        "",
        "Made by `make reproduce`; do not edit. Each answer is a rule applied to the figures. The page of a paper has "
        "claims, figures, rules, settings, seeds and dates.",
        "",
        "| paper | experiment | claims that hold | do not hold | not decided |",
        "|---|---|---|---|---|",
    ]
    for paper, results in papers:
        for experiment in paper.experiments:
            if experiment.name in results:
                answers = [claim["holds"] for claim in experiment.answers(results[experiment.name])]
                counts = " | ".join(str(answers.count(answer)) for answer in ANSWER)
                lines.append(f"| [{paper.name}]({paper.name}.md) | {experiment.title} | {counts} |")
    index.write_text("\n".join(lines) + "\n" + by_hand, encoding="utf-8")


def _section(experiment: Experiment, kept: Json, folder: Path, libraries: str) -> list[str]:
    result = kept["result"]
    lines = _claims(experiment.answers(kept))
    for table in experiment.tables(result):
        lines += _table(table)
    for chart in experiment.charts(result):
        lines += _chart(chart, folder)
    costs = experiment.costs(result)
    if costs:
        lines += ["What the sound version costs:", ""] + [f"- {cost}" for cost in costs] + [""]
    lines += [
        f"Seeds {_range(kept['seeds'])}; {kept['runs']} runs; {kept['date']}; {kept['seconds']:.0f} s of processor"
        f"{libraries}. [Settings and figures]({folder.name}/{experiment.name}.json)",
        "",
    ]
    return lines


def _claims(claims: Sequence[Json]) -> list[str]:
    lines = ["| claim | our figure | holds | rule |", "|" + "---|" * 4]
    lines += [f"| {row['claim']} | {row['ours']} | {ANSWER[row['holds']]} | {row['rule']} |" for row in claims]
    return [*lines, ""]


def _table(table: PaperTable) -> list[str]:
    lines = [f"{table.caption}:", "", "| " + " | ".join(table.header) + " |", "|" + "---|" * len(table.header)]
    return lines + ["| " + " | ".join(row) + " |" for row in table.rows] + [""]


def _chart(chart: PaperFigure, folder: Path) -> list[str]:
    save_chart(chart, folder / f"{chart.name}.svg")
    return [f"![{chart.title}. {chart.description}]({folder.name}/{chart.name}.svg)", ""]


def _range(seeds: Sequence[int]) -> str:
    """Return "1 to 20" for seeds that follow each other, else all of them."""
    if len(seeds) > 3 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def _versions(kept: Json) -> str:
    return ", ".join(f"{name} {version}" for name, version in kept["versions"].items())
