"""Tables of `benchmarks/gate_service.py`, and the arithmetic to ten billion records."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
GATE_REPORT, PAGE = RESULTS / "gate_service.json", RESULTS / "gate_service.md"
TITLE = "# A crowd's pool in columns, to ten billion records"
MILLION, MIB, GIB = 10**6, 2**20, 2**30
SIZES = (10**9, 10**10)
# Rows of a stored file and of a share on a cluster; the default of `UPLOAD_MAX_BYTES`.
FILE_ROWS, SHARE_ROWS, UPLOAD_BYTES = 262_144, MILLION, 2 * GIB
MACHINE_CORES, MACHINES = 8, (1, 4, 16, 64)
# A night on machines that anybody can rent: AWS m7g.2xlarge, 8 cores and 32 GiB, on demand in us-east-1, June 2026.
NIGHT_HOURS, NIGHT_MACHINES, MACHINE_HOUR_USD = 8, 16, 0.3264
# What is held of a text that reaches the minimum: its bytes, an offset and a count; of a stored file: name and digest.
COUNTED_BYTES, NAMED_BYTES = 16, 250
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
        f"The gate is k-anonymity by {report['unit']}s, through the whole service: reservation, scan, commit and"
        " questions. DuckDB's and Spark's own GROUP BY count the same files and neither sample, normalise, cap nor pay."
    )
    missed = (
        "Limits that this run missed: " + "; ".join(report["broken"]) + "."
        if report["broken"]
        else "No limit is missed."
    )
    return "\n\n".join([TITLE, measured, same, gate, engine_table(report), missed, *arithmetic(report)]) + "\n"


def different(report: Report) -> list[int]:
    """Return the sizes of which engines let different texts out."""
    sizes = sorted({cell["rows"] for cell in report["cells"]})
    return [rows for rows in sizes if len({cell["digest"] for cell in report["cells"] if cell["rows"] == rows}) > 1]


def arithmetic(report: Report) -> list[str]:
    """Return the arithmetic from the two sizes to one and ten billion records, a line for each number."""
    brought = report["imports"][-1]
    rows = brought["rows"]
    cells = {cell["executors"]: cell for cell in report["cells"] if cell["rows"] == rows}
    growths = {count: growth([each for each in report["cells"] if each["executors"] == count]) for count in cells}
    upload, stored = (brought[name] / rows for name in ("upload_bytes", "stored_bytes"))
    reading = growth(report["imports"])
    passing = (report["text_bytes"] + COUNTED_BYTES) * report["sampling_rate"] / report["k"]
    lines = [
        ("upload, as the file came", f"{upload:.0f} bytes a record", _sizes(upload)),
        ("columns in storage", f"{stored:.1f} bytes a record", _sizes(stored)),
        ("their files, and rows of the catalogue", f"{FILE_ROWS:,} records a file", _counts(FILE_ROWS)),
        ("import, core time", f"{reading * MILLION:.2f} s a million more", _times(reading)),
    ]
    lines += [
        (f"{name_of(cells[count])}, core time", f"{each * MILLION:.2f} s a million more", _times(each))
        for count, each in growths.items()
    ]
    lines += [
        ("memory of the process that counts", f"{cells[0]['process_mib']:.0f} MiB at {rows:,}", ["the same"] * 2),
        ("shares on a cluster, one at a time in an executor", f"{SHARE_ROWS:,} records a share", _counts(SHARE_ROWS)),
        (
            "the job's order: where the files are",
            f"{NAMED_BYTES} bytes a file",
            [f"{size / FILE_ROWS * NAMED_BYTES / MIB:,.1f} MiB" for size in SIZES],
        ),
        (
            "texts that can pass at most, in memory of the driver and of the site",
            f"{report['sampling_rate']} / {report['k']} texts a record, {report['text_bytes']:.0f} +"
            f" {COUNTED_BYTES} bytes",
            _sizes(passing),
        ),
        (
            "uploads under the default `UPLOAD_MAX_BYTES`",
            f"{upload:.0f} bytes a record / 2 GiB",
            [f"{-(-size * upload // UPLOAD_BYTES):,.0f}" for size in SIZES],
        ),
    ]
    table = ["| what | from what was measured | for 10^9 | for 10^10 |", "|---|---|---:|---:|"]
    table += [f"| {what} | {source} | {first} | {second} |" for what, source, (first, second) in lines]
    fewest = report["imports"][0]["rows"]
    said = (
        f"From {fewest:,} to {rows:,} records. What a record more costs between these sizes is taken to stay; what both"
        " cost alike, such as starting Spark, counts once."
    )
    return [said, "\n".join(table), *_machines(cells, growths, reading), _walls(upload, passing)]


def _machines(cells: dict[int, Report], growths: dict[int, float], reading: float) -> list[str]:
    if len(cells) == 1:
        return []
    most = max(cells)
    ready = cells[most]["ready_seconds"]
    lines = ["| M | import of 10^9 | gate of 10^9 | import of 10^10 | gate of 10^10 |", "|---:|---:|---:|---:|---:|"]
    for machines in MACHINES:
        cores = MACHINE_CORES * machines
        times = [
            _spoken(once + each * size / cores)
            for size in SIZES
            for once, each in ((0, reading), (ready, growths[most]))
        ]
        lines.append("| " + " | ".join([str(machines), *times]) + " |")
    return [
        f"Time on M machines of {MACHINE_CORES} cores, an executor or a worker for each: core time /"
        f" ({MACHINE_CORES} M), and for the gate the {ready:.0f} s until Spark was ready. An import is split over"
        " workers by parts of 32 MiB, a gate by files. Storage and network are taken to keep up.",
        "\n".join(lines),
        f"One process without Spark takes {_spoken(growths[0] * SIZES[0])} for 10^9 and"
        f" {_spoken(growths[0] * SIZES[1])} for 10^10. A record more costs Spark"
        f" {growths[most] / growths[0]:.1f} times the core time it costs one process, so a cluster is quicker from"
        " about that many cores on.",
        _night(ready, reading + growths[most]),
    ]


def _night(once: float, each: float) -> str:
    cores, hour = NIGHT_MACHINES * MACHINE_CORES, NIGHT_MACHINES * MACHINE_HOUR_USD
    most = (NIGHT_HOURS * 3600 - once) * cores / each
    seconds = {size: once + each * size / cores for size in SIZES}
    costs = " and ".join(
        f"10^{len(str(size)) - 1} records in {_spoken(taken)} for {taken / 3600 * hour:,.2f} USD"
        for size, taken in seconds.items()
    )
    return (
        f"{NIGHT_MACHINES} machines m7g.2xlarge of AWS ({MACHINE_CORES} cores, 32 GiB, {MACHINE_HOUR_USD} USD an hour"
        f" in us-east-1 in June 2026) cost {hour * NIGHT_HOURS:,.2f} USD in a night of {NIGHT_HOURS} hours. A core of"
        f" theirs taken to be as quick as one here, they import and gate {costs}. In the whole night it is"
        f" {most / 10**9:,.0f} x 10^9 records. Storage, traffic and the site's own machine come on top."
    )


def _walls(upload: float, passing: float) -> str:
    return (
        "Where the walls stand:\n\n"
        f"- One file under the default `UPLOAD_MAX_BYTES`: **{UPLOAD_BYTES / upload / MILLION:,.0f} million records**."
        " Then: raise it. Several uploads are several gate epochs, whose counts are not added.\n"
        "- Texts that pass, in 16 GiB of the driver's memory, if every one of them is said just as often as it must:"
        f" **{16 * GIB / passing / MILLION:,.0f} million records**. Then: a larger k, or more memory. Of the pool that"
        " was measured far fewer pass."
    )


def growth(cells: list[Report]) -> float:
    """Return the core seconds of a record more, Postgres' among them: between two sizes, or of the only one."""
    smallest, largest = (
        (cell["rows"], cell["processor_seconds"] + cell["postgres_seconds"]) for cell in (cells[0], cells[-1])
    )
    if smallest == largest:
        return float(largest[1]) / largest[0]
    return max(float(largest[1] - smallest[1]), 0.01) / (largest[0] - smallest[0])


def _sizes(each: float) -> list[str]:
    return [f"{each * size / GIB:,.0f} GiB" for size in SIZES]


def _counts(each: int) -> list[str]:
    return [f"{-(-size // each):,}" for size in SIZES]


def _times(each: float) -> list[str]:
    return [_spoken(each * size) for size in SIZES]


def _spoken(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"


def engine_table(report: Report) -> str:
    """Return every engine and every peer, size by size."""
    lines = [
        "| records | who counts | seconds | of them until ready | core seconds a million | of Postgres |"
        " largest process, MiB | all, MiB | load |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for rows in sorted({cell["rows"] for cell in report["cells"]}):
        cells = [cell for cell in report["cells"] + report["peers"] if cell["rows"] == rows]
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
