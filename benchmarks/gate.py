"""Counts of 5 M short queries beside Apache DataSketches and DuckDB, each in its own process.

Limits, in processor seconds: sketches at least 5 times Apache's; the contributor gate at least 1.2 times Apache's
count-min behind a set of pairs; estimates never under the truth; no text let out that an exact count would hold back; a
row of 50 M at most 1.2 times a row of 10 M.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from _gate_contenders import CONTENDERS, Stopwatch
from _gate_data import BATCH_ROWS, VOCABULARY, Data

SKETCH_LIMIT, CONTRIBUTOR_LIMIT, LINEAR_LIMIT = 5, 1.2, 1.2


def resident_mib(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"no {field}")


def run_here(name: str, rows: int) -> dict[str, Any]:
    data, watch = Data(VOCABULARY), Stopwatch()
    batches = (data.batch(number) for number in range(rows // BATCH_ROWS))
    Path("/proc/self/clear_refs").write_text("5")
    before = resident_mib("VmRSS")
    found = CONTENDERS[name](batches, watch)
    return {
        "cpu_seconds": round(watch.cpu, 3),
        "wall_seconds": round(watch.wall, 3),
        "extra_mib": round(resident_mib("VmHWM") - before, 1),
        **found,
    }


def run_apart(name: str, rows: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", name, "--rows", str(rows)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def best(runs: list[dict[str, Any]]) -> dict[str, Any]:
    return min(runs, key=lambda run: run["cpu_seconds"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=int, nargs="*", default=[10_000_000, 50_000_000])
    parser.add_argument("--one", choices=CONTENDERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(run_here(arguments.one, arguments.rows)))
        return 0
    packages = {"apache": "datasketches", "duckdb": "duckdb"}
    missing = {start for start, package in packages.items() if importlib.util.find_spec(package) is None}
    names = [name for name in CONTENDERS if not any(name.startswith(start) for start in missing)]
    report: dict[str, Any] = {"rows": arguments.rows, "load_before": os.getloadavg()[0]}
    report |= {f"{packages[start]}": "not installed" for start in sorted(missing)}
    # Taken in turns, so that what else the machine does meets all of them.
    runs = [{name: run_apart(name, arguments.rows) for name in names} for _ in range(arguments.repeats)]
    report |= {name: best([run[name] for run in runs]) for name in names}
    # Both sizes in turns as well: a machine that slows down between one size and the next looks like a curve.
    scaled = [{rows: run_apart("record_gate", rows) for rows in arguments.scale} for _ in range(arguments.repeats)]
    for rows in arguments.scale:
        report[f"record_gate_{rows}"] = best([run[rows] for run in scaled])
    broken = limits(report, arguments.scale)
    print(json.dumps(report, indent=2))
    return int(broken)


def limits(report: dict[str, Any], scale: list[int]) -> bool:
    def ratio(peer: str, ours: str) -> float:
        return round(report[peer]["cpu_seconds"] / report[ours]["cpu_seconds"], 2)

    broken = report["checked_gate"]["false_admits"] + report["checked_gate"]["missed"] > 0
    broken |= report["ours_sketch"]["under_the_truth"] > 0
    if "apache_sketch" in report:
        report["times_apache"] = ratio("apache_sketch", "ours_sketch")
        report["times_apache_for_contributors"] = ratio("apache_contributors", "contributor_gate")
        broken |= report["times_apache"] < SKETCH_LIMIT
        broken |= report["times_apache_for_contributors"] < CONTRIBUTOR_LIMIT
    costs = [report[f"record_gate_{rows}"]["cpu_seconds"] / rows for rows in scale]
    for rows, cost in zip(scale, costs, strict=True):
        report[f"cost_of_a_row_at_{rows}"] = round(cost / costs[0], 2)
        broken |= cost / costs[0] > LINEAR_LIMIT
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
