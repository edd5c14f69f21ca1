"""What the learner promises to be fast at, one line for each claim."""

import argparse
import json
import os
from pathlib import Path

from benchmarks.speed.logistic import accuracy_lines, fitting_lines
from benchmarks.speed.runs import run_lines
from benchmarks.speed.scoring import scoring_lines
from benchmarks.speed.timing import HEADER, Line


def main(about: str | None) -> int:
    """Measure, print a line for each claim, and return 1 if a limit is broken."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--fit-rows", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=128)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--peer-python", type=Path)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores at the start\n{HEADER}")
    parts = (
        lambda: scoring_lines(arguments.rows, arguments.dimension, arguments.repeats),
        lambda: fitting_lines(arguments.fit_rows, arguments.dimension, arguments.repeats),
        lambda: accuracy_lines(arguments.seeds, arguments.peer_python),
        lambda: run_lines(arguments.runs, arguments.repeats),
    )
    lines: list[Line] = []
    for part in parts:
        found = part()
        print("\n".join(map(str, found)), flush=True)
        lines += found
    print(f"load {os.getloadavg()[0]:.1f} at the end")
    if arguments.json:
        arguments.json.write_text(json.dumps([line.to_json() for line in lines], indent=1) + "\n")
    return int(not all(line.kept for line in lines))
