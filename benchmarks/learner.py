"""Everything the learner promises to be fast at: scoring, choosing, training and simulating, beside their peers.

Run: python benchmarks/learner.py [--rows N] [--fit-rows N] [--dimension D] [--runs N] [--repeats R] [--seeds S]
    [--peer-python PATH] [--json FILE]

Limits: scoring and screening 1 M x 128 float32 at most 1.5 times the time to copy them and 64 MiB of extra memory,
top-c 2.5 times; private logistic regression on 100 k x 128 at most 1.2 times scikit-learn's lbfgs, 0.7 times on
float32; 100 simulated runs of mini-batch descent at least 5 times as fast as a loop; held-out accuracy at most 0.01
below diffprivlib's at the same epsilon and regularisation. That peer is no dependency and needs scikit-learn below
1.8, so it gets an environment of its own:

    python3 -m venv peer && peer/bin/pip install diffprivlib==0.6.6 "scikit-learn<1.8"
    python benchmarks/learner.py --peer-python peer/bin/python --seeds 200
"""

import argparse
import json
import os
import sys
from pathlib import Path

# This file has the name of a package, which its own folder would hide.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.speed.logistic import accuracy_lines, fitting_lines  # noqa: E402
from benchmarks.speed.runs import run_lines  # noqa: E402
from benchmarks.speed.scoring import scoring_lines  # noqa: E402
from benchmarks.speed.timing import HEADER, Line  # noqa: E402


def main() -> int:
    """Measure, print a line for each claim, and return 1 if a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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


if __name__ == "__main__":
    sys.exit(main())
