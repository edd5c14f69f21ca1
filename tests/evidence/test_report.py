"""What `make evidence` writes follows from how its tests ended, and from nothing else."""

import json
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from learner.releases.artifacts.environment import code_version
from tests.evidence import report as report_module
from tests.evidence.mutants import KINDS, MUTANTS
from tests.evidence.report import AUDITS, CANARY, FAULTS, Report

FILE = f"{AUDITS[0]}privacy/mechanisms/test_audits.py"
CANARY_TOLD = {"name": "sums", "charged": 1.0, "trials": 40}


@pytest.fixture(autouse=True)
def whole_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DPAL_EVIDENCE_PART", "DPAL_EVIDENCE_RESUME", "DPAL_EVIDENCE_TRIALS"):
        monkeypatch.delenv(name, raising=False)


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def planted(path: Path) -> int:
    return sum(one["planted"] for one in read(path)["faults"]["kinds"])


def ended(report: Report, test: str, outcome: str, teardown: str = "passed", **told: object) -> None:
    """Report the phases of a test; one that is skipped is never called."""
    phases = {"setup": "passed", "call": outcome, "teardown": teardown}
    if outcome == "skipped":
        phases = {"setup": "skipped", "teardown": teardown}
    for when, how in phases.items():
        properties = [(CANARY, json.dumps(CANARY_TOLD | told))] if told else []
        report.pytest_runtest_logreport(
            SimpleNamespace(nodeid=test, when=when, outcome=how, user_properties=properties)
        )


def test_audits_are_counted_by_how_they_ended(tmp_path):
    report = Report(tmp_path / "var" / "evidence.json")
    ended(report, f"{FILE}::test_a", "passed", halved=False, bound=0.5)
    ended(report, f"{FILE}::test_b", "failed")
    ended(report, f"{FILE}::test_c", "skipped")
    ended(report, f"{FILE}::test_d", "passed", "failed")
    ended(report, "tests/pure/test_x.py::test_e", "passed")
    report.write()
    found = read(report.path)
    assert "faults" not in found
    (file,) = found["audits"]["files"]
    assert (file["file"], file["passed"], file["failed"], file["skipped"]) == (FILE, 1, 2, 1)
    assert "once in 10,000 seeds" in file["about"]
    assert found["audits"]["code"] == code_version()
    report = report.path.with_suffix(".md").read_text()
    assert "| sums | 40 | 1 | 1 | 0.5 | 0 of 0 |" in report
    assert f"| {FILE} | {file['about']} | 1 | 2 | 1 |" in report


def test_faults_are_counted_by_kind_and_the_other_part_stays(tmp_path):
    path = tmp_path / "evidence.json"
    first = Report(path)
    ended(first, f"{FILE}::test_a", "passed")
    first.write()
    second = Report(path)
    (kind, mutants), *_ = KINDS.items()
    for mutant, outcome in zip(mutants, ("passed", "failed", "passed"), strict=False):
        ended(second, f"{FAULTS}{mutant.name}]", outcome)
    second.write()
    found = read(path)
    assert "audits" in found
    told = found["faults"]["kinds"]
    assert told[0] == {"kind": kind, "listed": len(mutants), "planted": 3, "noticed": 2}
    assert sum(one["listed"] for one in told) == sum(map(len, KINDS.values()))
    assert "2 of 3 planted faults noticed" in path.with_suffix(".md").read_text()


def test_faults_planted_in_parts_add_up_on_the_same_sources(tmp_path):
    path = tmp_path / "evidence.json"
    (_, mutants), *_ = KINDS.items()
    tests = [f"{FAULTS}{mutant.name}]" for mutant in mutants[:3]]
    first = Report(path)
    ended(first, tests[0], "passed")
    ended(first, tests[1], "failed")
    # Nobody ends the run: what is there so far is written already.
    assert planted(path) == 2
    second = Report(path)
    assert second.passed == [tests[0]]
    for test in tests[1:]:
        ended(second, test, "passed")
    faults = read(path)["faults"]
    assert sum(one["noticed"] for one in faults["kinds"]) == planted(path) == 3
    assert datetime.fromisoformat(faults["began_at"]) == first.began_at.replace(microsecond=0)


def test_audits_add_up_and_a_repeated_one_counts_once(tmp_path, monkeypatch):
    path = tmp_path / "evidence.json"
    first = Report(path)
    ended(first, f"{FILE}::test_a", "passed", halved=False, bound=0.5)
    ended(first, f"{FILE}::test_b", "failed", halved=True, bound=0.6)
    second = Report(path)
    assert second.passed == [f"{FILE}::test_a"]
    ended(second, f"{FILE}::test_b", "passed", halved=True, bound=1.2)
    audits = read(path)["audits"]
    assert [(file["passed"], file["failed"]) for file in audits["files"]] == [(2, 0)]
    assert [one["bound"] for one in audits["canaries"]] == [0.5, 1.2]
    monkeypatch.setenv("DPAL_EVIDENCE_TRIALS", "20")
    assert Report(path).passed == []


def test_a_resumed_run_with_nothing_left_succeeds(tmp_path):
    session = SimpleNamespace(exitstatus=pytest.ExitCode.NO_TESTS_COLLECTED)
    report = Report(tmp_path / "evidence.json")
    report.pytest_sessionfinish(session)
    assert session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
    ended(report, f"{FILE}::test_a", "passed")
    Report(report.path).pytest_sessionfinish(session)
    assert session.exitstatus == pytest.ExitCode.OK


def test_verdicts_on_other_sources_are_not_kept(tmp_path, monkeypatch):
    path = tmp_path / "evidence.json"
    (_, mutants), *_ = KINDS.items()
    tests = [f"{FAULTS}{mutant.name}]" for mutant in mutants[:2]]
    ended(Report(path), tests[0], "passed")
    monkeypatch.setattr(report_module, "sources_digest", lambda: "another program")
    second = Report(path)
    assert second.passed == []
    ended(second, tests[1], "passed")
    assert planted(path) == 1


def collected(*names: str) -> tuple[list[str], int]:
    items = [SimpleNamespace(nodeid=name) for name in names]
    gone: list[object] = []
    config = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items: gone.extend(items)))
    report_module.pytest_collection_modifyitems(config, items)
    return [item.nodeid for item in items], len(gone)


def test_what_was_noticed_is_left_out_of_a_resumed_run(monkeypatch):
    (_, mutants), *_ = KINDS.items()
    noticed, other, left = (f"{FAULTS}{mutant.name}]" for mutant in mutants[:3])
    assert collected(noticed, other) == ([noticed, other], 0)
    monkeypatch.setenv(report_module.PASSED, json.dumps([noticed, other]))
    assert collected(noticed, f"{other}@database", left) == ([left], 2)


def test_parts_together_plant_every_fault_once(monkeypatch):
    names = [f"{FAULTS}{mutant.name}]" for mutant in MUTANTS]
    found = []
    for part in (1, 2, 3):
        monkeypatch.setenv("DPAL_EVIDENCE_PART", f"{part}/3")
        found += collected(*names)[0]
    assert sorted(found) == sorted(names)


def test_audits_are_divided_too(monkeypatch):
    monkeypatch.setenv("DPAL_EVIDENCE_PART", "2/2")
    names = [f"{FILE}::test_a", f"{FILE}::test_b", "tests/pure/test_x.py::test_c"]
    assert collected(*names) == (names[1:], 1)


def test_a_run_that_belongs_to_neither_writes_nothing(tmp_path):
    report = Report(tmp_path / "evidence.json")
    ended(report, "tests/pure/test_x.py::test_e", "passed")
    report.write()
    assert not report.path.exists()
