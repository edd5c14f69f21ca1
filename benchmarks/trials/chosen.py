"""Tasks on which presets were chosen, and their results on tasks that are held out."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# What settings were chosen on, and where that is said.
CHOSEN_ON = (
    (
        "`pool-experts`, two classes",
        "SMS spam, MNIST 0/9, KDD, ten tasks of two classes of SLURP 18",
        "[ADR 17](../adr/0017-noisy-gradient-steps.md)",
    ),
    (
        "`pool-experts`, more classes",
        "73 intents of CLINC in none of CLINC 10, 50 and 77; ten digits; CLINC 10, 50 and 77; SLURP 18",
        "above, [ADR 17](../adr/0017-noisy-gradient-steps.md)",
    ),
    (
        "`voice-crowd`",
        "SLURP 18; SLURP 60 for how much typical texts weigh",
        "[selection.md](selection.md), [ADR 20](../adr/0020-crowd-selection.md)",
    ),
    (
        "streams",
        "MNIST 0/9, KDD; SMS spam; SLURP 18 and 60, CLINC 10 and 50, ten digits",
        "[ADR 19](../adr/0019-streams.md)",
    ),
)
WORDS = (
    "No task was kept aside while settings were chosen. Named here is what a choice rests on by its own record, and "
    "for each kind of preset tasks that no record of its own names. Their records are not apart from the others', so "
    "they show less than new data. A row below version 0 loses. A project flags such a release, and does not make it "
    "the latest by itself. The crowd has no row: SLURP 60 had a part in its choice, and CLINC 150 was not played."
)


def held_out_lines(tasks: dict[str, Any], held_out: Mapping[str, Sequence[str]]) -> list[str]:
    lines = [WORDS, "", "| preset | chosen on | where that is said |", "|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in CHOSEN_ON]
    lines += ["", "| held out | preset | labels | project | random | version 0 | constant | no privacy |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for kind, names in held_out.items():
        for name in names:
            for preset, made in _played(tasks, name, kind):
                for point in made["points"]:
                    lines.append(
                        f"| {name} | {preset} | {point['labels']:,} | {' | '.join(map(shown, _compared(point)))} |"
                    )
    return lines


def _played(tasks: dict[str, Any], name: str, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    found = tasks.get(name, {}).get(kind)
    if found and kind == "blocks":
        yield "pool-experts", found
    elif found:
        yield from found["presets"].items()


def _compared(point: dict[str, Any]) -> list[dict[str, Any] | None]:
    return [point.get(column) for column in ("project", "random", "version_0", "constant", "no_privacy")]


def shown(found: dict[str, Any] | None) -> str:
    if not found:
        return ""
    error = f" ± {found['accuracy_se']:.3f}" if found["accuracy_se"] else ""
    return f"{found['accuracy']:.3f}{error}"
