"""What settings of presets were chosen on, and what presets reach as they ship on tasks that no choice names."""

from collections.abc import Sequence
from typing import Any

# What settings were chosen on, and where that is said.
CHOSEN_ON = (
    (
        "`pool-experts`, two classes",
        "SMS spam, MNIST 0/9, KDD, the digits nought and nine",
        "[ADR 13](../adr/0013-gaussian-huber-by-default.md), [learner.md](../learner.md#what-the-defaults-rest-on)",
    ),
    (
        "`pool-experts`, more classes",
        "73 intents of CLINC in none of CLINC 10, 50 and 77; ten digits; CLINC 10, 50 and 77; SLURP 18",
        "above, [ADR 59](../adr/0059-steps-about-a-mean.md)",
    ),
    ("`voice-crowd`", "SLURP 18", "[crowd.md](crowd.md), [selection.md](selection.md)"),
    (
        "streams",
        "MNIST 0/9, KDD; SMS spam; SLURP 18, CLINC 10, ten digits",
        "[recipes.md](recipes.md), ADR [58](../adr/0058-a-stream-of-experts-learns-from-sums.md), "
        "[64](../adr/0064-every-preset-beats-a-constant.md), [65](../adr/0065-names-start-running-sums.md)",
    ),
)
WORDS = (
    "No task was kept aside while settings were chosen. Named here is what a choice rests on by its own record, and "
    "two tasks that no record names. Their records are not apart from the others', so they show less than new data. "
    "Streams and the crowd have not been played on them."
)


def held_out_lines(tasks: dict[str, Any], held_out: Sequence[str]) -> list[str]:
    """Return what was chosen on what, and the table of tasks that are held out."""
    lines = [WORDS, "", "| preset | chosen on | where that is said |", "|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in CHOSEN_ON]
    lines += ["", "| held out | preset | labels | project | random | version 0 | constant | no privacy |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    found = [(name, made) for name in held_out if (made := tasks.get(name, {}).get("blocks"))]
    for name, made in found:
        for point in made["points"]:
            cells = [shown(point[column]) for column in ("project", "random", "version_0", "constant", "no_privacy")]
            lines.append(f"| {name} | pool-experts | {point['labels']:,} | {' | '.join(cells)} |")
    return lines


def shown(found: dict[str, Any] | None) -> str:
    """Return an accuracy and its standard error."""
    if not found:
        return ""
    error = f" ± {found['accuracy_se']:.3f}" if found["accuracy_se"] else ""
    return f"{found['accuracy']:.3f}{error}"
