"""Reproduce the papers' tables and figures: `python -m learner.papers --data FOLDER [--paper NAME]`."""

import argparse
import sys
from pathlib import Path

from learner.papers.catalogue import PAPERS
from learner.papers.experiment import Data
from learner.papers.runner import Reproduction, usable_cores


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="reproduce", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the real data; without it, what needs none")
    parser.add_argument("--paper", choices=PAPERS, action="append", help="a paper; may be repeated; all by default")
    parser.add_argument("--small", action="store_true", help="seconds each, on generated and scikit-learn's data")
    parser.add_argument("--output", type=Path, help="folder of the results, docs/results by default")
    parser.add_argument("--processes", type=int, default=usable_cores(), help="how many run at once")
    options = parser.parse_args(arguments)
    if options.data is not None and not options.data.is_dir():
        parser.error("--data must name a folder")
    if options.processes < 1:
        parser.error("--processes must be at least 1")
    output = options.output or Path("var/reproduce-small" if options.small else "docs/results")
    Reproduction(
        output=output,
        data=Data(options.data),
        small=options.small,
        processes=options.processes,
        say=lambda line: print(line, flush=True),
    ).reproduce(options.paper or PAPERS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
