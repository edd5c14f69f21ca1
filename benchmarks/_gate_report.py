"""Tables of `benchmarks/gate_service.py`."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
GATE_REPORT, PAGE = RESULTS / "gate_service.json", RESULTS / "gate_service.md"
TITLE = "# A crowd's pool in columns"
MILLION = 10**6
# What is held of a text that reaches the minimum beside its bytes: an offset and a count.
COUNTED_BYTES = 16
Report = dict[str, Any]


def write_section(report: Report) -> None:
    """Write docs/results/gate_service.json, and its page."""
    GATE_REPORT.write_text(json.dumps(report, indent=1) + "\n")
    PAGE.write_text(section(report))


def section(report: Report) -> str:
    missing = f" Left out: {', '.join(report['left_out'])}." if report["left_out"] else ""
    measured = (
        f"Made by `python benchmarks/gate_service.py --write` on {report['date']}: {report['seconds']} s on"
        f" {report['cores']} cores, which worker, Spark's processes and Postgres share. Executors have one core each."
        f"{missing}"
    )
    same = (
        "**Engines let different texts out; this is a defect.**"
        if different(report)
        else "What came out was the same to the byte from every engine and every number of executors."
    )
    gate = (
        "The gate is k-anonymity by records, through the whole service: reservation, scan, commit and"
        " questions. DuckDB's and Spark's own GROUP BY count the same files and neither sample, normalise, cap nor pay."
    )
    missed = (
        "Limits that this run missed: " + "; ".join(report["broken"]) + "."
        if report["broken"]
        else "No limit is missed."
    )
    return "\n\n".join([TITLE, measured, same, gate, engine_table(report), missed]) + "\n"


def different(report: Report) -> list[int]:
    """Return the sizes of which engines let different texts out."""
    sizes = sorted({cell["rows"] for cell in report["cells"]})
    return [rows for rows in sizes if len({cell["digest"] for cell in report["cells"] if cell["rows"] == rows}) > 1]


def engine_table(report: Report) -> str:
    """Return every engine and every peer, size by size from a million records on; the JSON has the smaller ones."""
    lines = [
        "| records | who counts | seconds | of them until ready | core seconds a million | of Postgres |"
        " largest process, MiB | all, MiB | load |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    sizes = sorted({cell["rows"] for cell in report["cells"]})
    # One number of executors is enough to compare; the JSON has all.
    least = min((cell["executors"] for cell in report["cells"] if cell["executors"]), default=0)
    for rows in [size for size in sizes if size >= MILLION] or sizes:
        cells = [
            cell
            for cell in report["cells"] + report["peers"]
            if cell["rows"] == rows and cell["executors"] in (0, None, least)
        ]
        lines += ["| " + " | ".join(_values(cell)) + " |" for cell in cells]
    return "\n".join(lines)


def _values(cell: Report) -> list[str]:
    millions = cell["rows"] / MILLION
    postgres = cell.get("postgres_seconds")
    return [
        f"{cell['rows']:,}",
        name_of(cell),
        f"{cell['wall_seconds']:.2f}",
        f"{cell['ready_seconds']:.2f}" if "ready_seconds" in cell else "",
        f"{cell['processor_seconds'] / millions:.2f}",
        "" if postgres is None else f"{postgres / millions:.2f}",
        f"{cell['process_mib']:,.0f}" if "process_mib" in cell else "",
        f"{cell['together_mib']:,.0f}",
        f"{cell['load']:.1f}" if "load" in cell else "",
    ]


def name_of(cell: Report) -> str:
    """Return how a table calls an engine or a peer."""
    of = f", {cell['executors']} executors" if cell["executors"] else ""
    if "name" in cell:
        return {"duckdb": "DuckDB's GROUP BY", "spark": "Spark's own SQL"}[cell["name"]] + of
    return f"gate on Spark{of}" if cell["executors"] else "gate in process"
