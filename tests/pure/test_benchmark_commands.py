import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", ["selection", "spans", "utility", "gate_service", "ledger", "label_loop", "predict"])
def test_it_says_how_it_is_run(name):
    command = [sys.executable, f"benchmarks/{name}.py", "--help"]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": "."}, capture_output=True, text=True, check=True)
    assert "usage" in done.stdout


def figures(rows, executors, **changed):
    told = {"rows": rows, "executors": executors, "digest": "same", "wall_seconds": 2.0, "ready_seconds": 1.0}
    told |= {"processor_seconds": rows * 1e-7, "postgres_seconds": 0.1, "process_mib": 100.0, "together_mib": 200.0}
    return told | {"load": 1.0} | changed


def measured(**changed):
    """Return the report of a gate by three engines over ten million records; `changed` is what one process took."""
    cells = [figures(rows, count) for rows in (10**6, 10**7) for count in (0, 2, 4)]
    cells[3] |= changed
    peers = [
        {"rows": 10**7, "name": name, "executors": count, "processor_seconds": 1.0, "frequent": 5}
        | {"wall_seconds": 1.0, "together_mib": 100.0}
        for name, count in (("duckdb", 0), ("spark", 2), ("spark", 4))
    ]
    imports = [figures(rows, 0, upload_bytes=31 * rows, stored_bytes=12 * rows) for rows in (10**6, 10**7)]
    about = {"k": 14, "sampling_rate": 0.25, "text_bytes": 24.0, "cores": 2, "date": "2026-11-25"}
    # A mebibyte of texts, near enough.
    about |= {"texts": 26_214}
    return about | {"cells": cells, "peers": peers, "imports": imports, "left_out": [], "seconds": 400}


@pytest.fixture
def gate_service(monkeypatch):
    # Behind everything else: one of the benchmarks has the name of a package.
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])
    return importlib.import_module("gate_service")


@pytest.mark.parametrize(
    ("changed", "broken"),
    [
        ({}, None),
        ({"digest": "other"}, "10,000,000 rows: engines let different texts out"),
        ({"processor_seconds": 2.0}, "0.21 core seconds a million at 10,000,000 rows, where 0.2 is the limit"),
        ({"postgres_seconds": 2.1}, "3.1 times DuckDB"),
        ({"process_mib": 130.9}, None),
        (
            {"process_mib": 131.0},
            "131.0 MiB at 10,000,000 rows, more than 1.3 times the 100.0 at 1,000,000 and 1 for all texts there are",
        ),
    ],
)
def test_the_gate_by_every_engine_has_limits(gate_service, changed, broken):
    found = gate_service.broken_limits(measured(**changed))
    assert found == [] if broken is None else broken in found


def test_memory_is_compared_from_a_million_records_on(gate_service):
    report = measured()
    report["cells"].insert(0, figures(10_000, 0, process_mib=10.0))
    assert gate_service.broken_limits(report) == []
    report["cells"] = [figures(rows, 0, process_mib=mib) for rows, mib in ((10_000, 10.0), (100_000, 60.0))]
    assert gate_service.broken_limits(report | {"peers": []}) == []


def test_peers_that_count_differently_are_told(gate_service):
    report = measured()
    report["peers"][1]["frequent"] = 6
    assert gate_service.broken_limits(report) == ["peers count differently"]


@pytest.mark.parametrize(("peer", "broken"), [(5.0, []), (5.1, ["19.6 times Label Studio with 8 people"]), (None, [])])
def test_the_label_loop_names_the_people_with_whom_it_is_not_twenty_times_its_peer(peer, broken):
    label_loop = importlib.import_module("benchmarks.label_loop")
    levels = [{"annotators": n, "items_per_second": 100.0, "p95_ms": 99.0} for n in label_loop.LEVELS]
    studio = [] if peer is None else [{"items_per_second": rate} for rate in (4.0, peer, 3.0)]
    found = {"over_overlap": 0, "statements": 5, "http": levels, "label_studio": studio}
    assert label_loop.broken_limits(found) == broken
