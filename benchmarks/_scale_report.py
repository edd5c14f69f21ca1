"""What `benchmarks/scale.py` prints and writes: tables, a drawing, and the arithmetic up to a billion records."""

import json
import math
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from _gate_report import stored_section

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
STAGES = {
    "import": "Import of a CSV into a crowd project, rows in the database",
    "gate": "k-anonymity gate by records, rows in the database",
    "features": "Features of all records, and a round of top-c",
    "score": "A round of top-c over the feature file",
}
PEERS = {
    "import": "COPY of ready lines",
    "gate": "Postgres' GROUP BY",
    "features": "the featuriser over texts in memory",
    "score": "numpy: product and partition in memory",
}
BILLION, MILLION, GIB = 10**9, 10**6, 2**30
NIGHT_HOURS, MACHINE_CORES, DATABASE_CORES = 8, 8, 16
# What the choice that holds most, a screen, held of each of ten million candidates (rounds.md).
HOLDER_BYTES = 6.3
# Runs before this day listed every candidate of a round.
UNLISTED_SINCE = "2026-11-24"
EXACT_BYTES = 2**27
COLOURS, MARKS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7"), "osD^"
Report = dict[str, Any]


def table_of(report: Report, stage: str) -> str:
    """Return the cells of one stage as a table."""
    cells = [cell for cell in report["cells"] if cell["stage"] == stage]
    lines = [
        "| records | workers | seconds | times the peer | worker core seconds a million | of Postgres | worker MiB |"
        " messages | load |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for cell in cells:
        millions = cell["rows"] / MILLION
        values = (
            f"{cell['rows']:,}",
            cell["workers"],
            f"{cell['wall_seconds']:.2f}",
            f"{cell['wall_seconds'] / max(cell['peer_seconds'], 1e-3):.1f}",
            f"{cell['worker_cpu_seconds'] / millions:.2f}",
            f"{cell['postgres_cpu_seconds'] / millions:.2f}",
            f"{cell['worker_mib']:.0f}",
            cell["messages"],
            f"{cell['load']:.1f}",
        )
        lines.append("| " + " | ".join(map(str, values)) + " |")
    return "\n".join(lines)


def print_tables(report: Report) -> None:
    """Print every figure of the run."""
    for stage, name in STAGES.items():
        print(f"\n{name}; peer: {PEERS[stage]}\n{table_of(report, stage)}")
    print("\n" + arithmetic(report))
    print(f"\n{report['seconds']} s on {report['cores']} cores; left out: {', '.join(report['left_out']) or 'nothing'}")
    differing = ", ".join(report["differing"])
    print(f"BROKEN: the number of workers changes {differing}" if differing else "The same bytes from all workers.")


def write_report(report: Report) -> None:
    """Write docs/results/scale.json, scale.svg and scale.md."""
    report.setdefault("date", f"{datetime.now(UTC):%Y-%m-%d}")
    (RESULTS / "scale.json").write_text(json.dumps(report, indent=1) + "\n")
    (RESULTS / "scale.svg").write_text(drawing(report))
    loads = [cell["load"] for cell in report["cells"]]
    left_out = f" Left out for want of time: {', '.join(report['left_out'])}." if report["left_out"] else ""
    parts = [
        "# From ten thousand records up",
        f"Made by `python benchmarks/scale.py --write` on {report['date']}: {report['seconds']} s on {report['cores']}"
        f" cores, Python {report['python']}, at a load of {min(loads):.1f} to {max(loads):.1f} before each run."
        f"{left_out} Workers, Postgres, broker and the program that measures share these cores, so more workers than"
        " cores show what splitting costs, not what more machines bring.",
        (
            "**The number of workers changes " + ", ".join(report["differing"]) + "; this is a defect.**"
            if report["differing"]
            else "Every result was the same to the byte for every number of workers: imported rows and their numbers, "
            "gate output, feature file, chosen records."
        ),
        "![Wall seconds for a million records against the number of records, for four stages](scale.svg)",
    ]
    for stage, name in STAGES.items():
        parts.append(f"## {name}")
        if stage == "score" and report["date"] < UNLISTED_SINCE:
            parts.append(
                "Measured before a round stopped listing its candidates; [rounds.md](rounds.md) has what it holds and"
                " takes since."
            )
        parts += [f"Peer, in one process of the same run: {PEERS[stage]}.", table_of(report, stage)]
    parts += [
        "## Up to a billion records in the database",
        "This is for records that stand in the database, those of experts. A crowd's pool lies in columns"
        + (", and its figures follow further below." if stored_section() else "."),
        arithmetic(report),
        stored_section(),
    ]
    (RESULTS / "scale.md").write_text("\n\n".join(parts).rstrip() + "\n")


def arithmetic(report: Report) -> str:
    """Return the arithmetic from the largest run by one worker to a billion records, a line for each number."""
    base = {stage: _largest(report, stage) for stage in STAGES}
    brought, gated = base["import"], base["gate"]
    lines = [
        f"From the largest run by one worker ({brought['rows']:,} records); a billion is {BILLION // MILLION:,} "
        "million. What grows with the records is taken to grow in proportion, which the tables show or contradict."
        + (
            ""
            if brought["rows"] >= MILLION
            else " **So small a run is mostly fixed costs: its times are far too high.**"
        ),
        "",
        "| what | from what was measured | for a billion |",
        "|---|---|---:|",
    ]
    cores = {"worker": 0.0, "postgres": 0.0}
    for stage, cell in base.items():
        for side in cores:
            each = cell[f"{side}_cpu_seconds"] / cell["rows"] * MILLION
            hours = each * (BILLION / MILLION) / 3600
            cores[side] += hours
            lines.append(f"| {stage}, core time of {side} | {each:.2f} s a million x 1,000 / 3,600 | {hours:.2f} h |")
    for side, hours in cores.items():
        lines.append(
            f"| cores of {side} for all four within a night | {hours:.1f} h / {NIGHT_HOURS} h |"
            f" {max(1, math.ceil(hours / NIGHT_HOURS))} |"
        )
    rows = brought["rows"]
    each = {name: brought[f"{name}_bytes"] / rows for name in ("upload", "table", "index")}
    lines += [
        _size("upload, as the file came", each["upload"]),
        _size("records in the database", each["table"]),
        _size("their two indexes", each["index"]),
        _size(f"feature file, {report['dimension']} columns", 4.0 * report["dimension"]),
    ]
    # In: from storage to a worker, from there to Postgres. Out: to whoever gates, and to whoever makes features.
    crossing = 2 * each["upload"] + 2 * each["table"]
    lines.append(
        "| network: the file in twice, the records out twice |"
        f" 2 x {each['upload']:.0f} + 2 x {each['table']:.0f} bytes | {crossing * BILLION / GIB:,.0f} GiB |"
    )
    uploads = math.ceil(each["upload"] * BILLION / (2 * GIB))
    lines += [
        f"| uploads under the default `UPLOAD_MAX_BYTES` | {each['upload']:.0f} x 10^9 bytes / 2 GiB | {uploads} |",
        f"| parts of these uploads | {each['upload']:.0f} x 10^9 bytes / 32 MiB |"
        f" {math.ceil(each['upload'] * BILLION / 2**25):,} |",
        f"| feature parts | 10^9 / 262,144 | {math.ceil(BILLION / 262_144):,} |",
        f"| messages for imports and features | at most 64 helpers are called for each file | {64 * (uploads + 1):,} |",
        f"| ledger rows | {gated['ledger_rows']} for an upload's gate, {base['score']['ledger_rows']} for a round |"
        f" {gated['ledger_rows'] * uploads + base['score']['ledger_rows']:,} |",
    ]
    holder = HOLDER_BYTES
    exact = EXACT_BYTES / report["counted_bytes"]
    lines += [
        f"| memory of whoever holds a round | {holder:.0f} bytes a candidate, of a screen"
        f" ([rounds.md](rounds.md)); top-c and chance hold a block | {holder * BILLION / GIB:,.0f} GiB |",
        f"| memory of a gate worker | {gated['worker_mib']:.0f} MiB at {gated['rows']:,} records, bounded |"
        f" {gated['worker_mib']:.0f} MiB |",
        f"| distinct texts counted exactly in memory by one process, before a sketch picks candidates |"
        f" 128 MiB / {report['counted_bytes']:.0f} bytes a text | {exact / MILLION:.1f} million |",
        "",
        *_machines(cores),
        "",
        *_walls(each, holder),
    ]
    return "\n".join(lines)


def _machines(cores: dict[str, float]) -> list[str]:
    """Return how long all four stages take with more machines, as long as one Postgres serves them."""
    lines = [
        f"Time for all stages of a billion records, workers on M machines of {MACHINE_CORES} cores and Postgres on"
        f" one of {DATABASE_CORES}: the longer of {cores['worker']:.1f} h / ({MACHINE_CORES} M) and"
        f" the database's {cores['postgres']:.1f} h / {DATABASE_CORES}.",
        "",
        "| M | workers | database | time |",
        "|---:|---:|---:|---:|",
    ]
    database = cores["postgres"] / DATABASE_CORES
    for machines in (1, 2, 4, 16):
        workers = cores["worker"] / (MACHINE_CORES * machines)
        lines.append(f"| {machines} | {workers:.2f} h | {database:.2f} h | {max(workers, database):.2f} h |")
    enough = max(1, math.ceil(cores["worker"] / MACHINE_CORES / database)) if database else 1
    lines += ["", f"From {enough} machine{'s' if enough > 1 else ''} on, the database alone decides."]
    return lines


def _walls(each: dict[str, float], holder: float) -> list[str]:
    """Return what ends first, in records, and what to do then."""
    walls = {
        f"One file under the default `UPLOAD_MAX_BYTES`, 2 GiB / {each['upload']:.0f} bytes": (
            2 * GIB / each["upload"],
            "raise it, or upload in parts; each upload is a gate epoch of its own, and counts of epochs are not added",
        ),
        f"Memory of whoever holds a round, 16 GiB / {holder:.0f} bytes": (
            16 * GIB / holder,
            "several projects, or a choice that holds less: top-c or chance",
        ),
        f"One Postgres with 1 TiB for records, 1 TiB / {each['table'] + each['index']:.0f} bytes": (
            1024 * GIB / (each["table"] + each["index"]),
            "a larger disk, or retention, which empties records that were read; records are never joined over projects,"
            " so a site for each group of projects works as well",
        ),
    }
    lines = ["Where the walls stand, the first one first:", ""]
    for name in sorted(walls, key=lambda name: walls[name][0]):
        count, advice = walls[name]
        lines.append(f"- {name}: **{count / MILLION:,.0f} million records**. Then: {advice}.")
    return lines


def _size(name: str, bytes_each: float) -> str:
    return f"| {name} | {bytes_each:.0f} bytes a record x 10^9 / 2^30 | {bytes_each * BILLION / GIB:,.0f} GiB |"


def _largest(report: Report, stage: str) -> Report:
    cells = [cell for cell in report["cells"] if cell["stage"] == stage]
    fewest = min(cell["workers"] for cell in cells)
    found: Report = max((cell for cell in cells if cell["workers"] == fewest), key=lambda cell: cell["rows"])
    return found


def drawing(report: Report) -> str:
    """Draw wall seconds a million records against records, one panel for each stage."""
    import io

    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    style = {"svg.fonttype": "none", "svg.hashsalt": "dpal", "axes.spines.top": False, "axes.spines.right": False}
    buffer = io.StringIO()
    with mpl.rc_context(style):
        figure, panels = plt.subplots(2, 2, figsize=(10, 7.5), sharex=True, layout="constrained")
        for panel, (stage, name) in zip(panels.flat, STAGES.items(), strict=True):
            cells = [cell for cell in report["cells"] if cell["stage"] == stage]
            for place, count in enumerate(sorted({cell["workers"] for cell in cells})):
                own = [cell for cell in cells if cell["workers"] == count]
                panel.plot(
                    [cell["rows"] for cell in own],
                    [cell["wall_seconds"] / cell["rows"] * MILLION for cell in own],
                    color=COLOURS[place],
                    marker=MARKS[place],
                    label=f"{count} worker{'s' if count > 1 else ''}",
                )
            peer = {cell["rows"]: max(cell["peer_seconds"], 1e-4) / cell["rows"] * MILLION for cell in cells}
            panel.plot(list(peer), list(peer.values()), color="#555555", linestyle="--", label=PEERS[stage])
            panel.set(xscale="log", yscale="log", title=name)
            panel.grid(visible=True, color="#e5e5e5")
            panel.legend(fontsize=8)
        figure.supxlabel("records")
        figure.supylabel("wall seconds a million records")
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Title": "Cost of a million"})
        plt.close(figure)
    words = (
        "Four panels: import, gate, features and scoring. Each shows wall seconds for a million records against the "
        "number of records, both axes logarithmic, one line for each number of workers and a dashed one for the peer. "
        "The numbers are in the tables beside the drawing."
    )
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", buffer.getvalue(), flags=re.DOTALL)
    svg = svg.replace("</title>", f"</title>\n <desc>{escape(words)}</desc>", 1)
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"
