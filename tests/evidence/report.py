"""A plugin of pytest that writes what `make evidence` found to a file: `-p tests.evidence.report`, EVIDENCE_FILE=FILE.

A report in Markdown is written beside it. A run adds to the part it belongs to, audits or faults, and leaves the other;
a run that belongs to neither writes nothing.

Each outcome is written when it is there, and those of an earlier run on the same sources stay. With
DPAL_EVIDENCE_RESUME=1 no test runs again that passed then; with DPAL_EVIDENCE_PART=2/6 every sixth test of a part runs,
from the second on.
"""

import ast
import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dpal_site.embedded.servers import REPOSITORY
from learner.releases.artifacts.environment import code_version
from tests.evidence.mutants import KINDS

FORMAT = "dpal-evidence/2"
AUDITS = ("tests/statistical/", "tests/evidence/test_sniper.py")
PLANTING = "tests/evidence/test_mutants.py::"
FAULTS = f"{PLANTING}test_it_is_killed_by_each_test_that_is_named_for_it["
PARTS: dict[str, tuple[str, ...]] = {"audits": AUDITS, "faults": (PLANTING,)}
COMMAND = "make evidence"
# What a test puts into its properties about a canary that it sent.
CANARY = "canary"
OUTCOMES = ("passed", "failed", "skipped")
COUNTS = ("listed", "planted", "noticed")
SOURCES = ("addons", "annotation", "client", "dpal_site", "learner", "privacy", "tests")
# What passed already, for the processes that collect tests: all of them must leave the same ones out.
PASSED = "DPAL_EVIDENCE_PASSED"


class Report:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.began_at = datetime.now(UTC)
        self.ended: dict[str, str] = {}
        self.canaries: list[dict[str, Any]] = []
        digest, self.trials = sources_digest(), int(os.environ.get("DPAL_EVIDENCE_TRIALS", "1"))
        self.sources = {"audits": f"{digest} {self.trials}", "faults": digest}
        kept = self._kept()
        self.earlier = {name: kept[name] for name in PARTS if kept.get(name, {}).get("sources") == self.sources[name]}

    @property
    def passed(self) -> list[str]:
        return [test for part in self.earlier.values() for test, how in part["tests"].items() if how == "passed"]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        before = self.ended.get(report.nodeid, "passed")
        self.ended[report.nodeid] = "failed" if "failed" in (before, report.outcome) else report.outcome
        if report.when != "call" and report.outcome == "passed":
            self.ended[report.nodeid] = before
        if report.when == "call":
            told = [json.loads(str(value)) for name, value in report.user_properties if name == CANARY]
            self.canaries += [{"test": report.nodeid} | one for one in told]
        if report.when == "teardown":
            self.write()

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Be content where a resumed run has nothing left to do."""
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.passed:
            session.exitstatus = pytest.ExitCode.OK

    def write(self) -> None:
        parts = {"audits": self._audits(), "faults": self._faults()}
        found = {name: part for name, part in parts.items() if part is not None}
        if not found:
            return
        written = self._kept() | {"format": FORMAT} | found
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_name(self.path.name + ".new")
        draft.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
        draft.replace(self.path)
        self.path.with_suffix(".md").write_text(report_of(written), encoding="utf-8")

    def _kept(self) -> dict[str, Any]:
        kept: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}
        return kept

    def _part(self, name: str) -> dict[str, Any] | None:
        """Return what a part says of its run and its tests, those of an earlier run on the same sources with them."""
        ended = {
            _without_group(test): outcome
            for test, outcome in self.ended.items()
            if test.startswith(PARTS[name]) and (name == "audits" or outcome != "skipped")
        }
        if not ended:
            return None
        earlier = self.earlier.get(name, {})
        return {
            "command": COMMAND,
            "code": code_version(),
            "began_at": earlier.get("began_at", self.began_at.isoformat(timespec="seconds")),
            "ended_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "sources": self.sources[name],
            "tests": earlier.get("tests", {}) | ended,
        }

    def _audits(self) -> dict[str, Any] | None:
        if (part := self._part("audits")) is None:
            return None
        files: defaultdict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(OUTCOMES, 0))
        for test, outcome in part["tests"].items():
            files[test.partition("::")[0]][outcome] += 1
        told = [{"file": name, "about": _about(name), **counts} for name, counts in sorted(files.items())]
        canaries = [one for one in self.earlier.get("audits", {}).get("canaries", []) if one["test"] not in self.ended]
        return part | {"trials": self.trials, "files": told, "canaries": canaries + self.canaries}

    def _faults(self) -> dict[str, Any] | None:
        if (part := self._part("faults")) is None:
            return None
        ended = {test.removeprefix(FAULTS).removesuffix("]"): how for test, how in part["tests"].items()}
        kinds = [
            {
                "kind": kind,
                "listed": len(mutants),
                "planted": sum(mutant.name in ended for mutant in mutants),
                "noticed": sum(ended.get(mutant.name) == "passed" for mutant in mutants),
            }
            for kind, mutants in KINDS.items()
        ]
        return part | {"kinds": kinds}


def report_of(found: Mapping[str, Any]) -> str:
    """Return the report in Markdown; a part that was not run is left out."""
    lines = ["# Evidence", ""]
    if (audits := found.get("audits")) is not None:
        trials = f"Trials: {audits['trials']} times those of the ordinary tests."
        heads = ("canary", "fits on each side", "sent", "charged", "highest bound", "half the noise found")
        lines += ["## Audits", "", _when(audits), "", trials, "", *_table(heads, _canary_rows(audits["canaries"])), ""]
        files = [(one["file"], one["about"], *(one[how] for how in OUTCOMES)) for one in audits["files"]]
        lines += _table(("file", "audits", "passed", "failed", "left out"), files)
    if (faults := found.get("faults")) is not None:
        listed, planted, noticed = (sum(one[how] for one in faults["kinds"]) for how in COUNTS)
        told = f"{noticed} of {planted} planted faults noticed, {listed} listed."
        rows = [(one["kind"], *(one[how] for how in COUNTS)) for one in faults["kinds"]]
        lines += ["", "## Planted faults", "", _when(faults), "", told, "", *_table(("kind", *COUNTS), rows)]
    return "\n".join(lines) + "\n"


def _canary_rows(canaries: list[Mapping[str, Any]]) -> Iterator[tuple[object, ...]]:
    """Put what several tests say of one estimator together; `halved` ones are twins with half the noise."""
    for name in dict.fromkeys(one["name"] for one in canaries):
        own = [one for one in canaries if one["name"] == name]
        whole, halved = ([one for one in own if one["halved"] == is_halved] for is_halved in (False, True))
        highest = [max((one[of] for one in whole), default=None) for of in ("charged", "bound")]
        told = ["not run" if value is None else f"{value:.3g}" for value in highest]
        power = sum(one["bound"] > one["charged"] for one in halved)
        yield name, max(one["trials"] for one in own), len(whole), *told, f"{power} of {len(halved)}"


def _when(part: Mapping[str, Any]) -> str:
    began_at, ended_at = (datetime.fromisoformat(part[name]) for name in ("began_at", "ended_at"))
    return f"`{part['command']}`, sources {part['code']}, {began_at:%Y-%m-%d %H:%M} to {ended_at:%Y-%m-%d %H:%M} UTC."


def _table(heads: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> list[str]:
    return [f"| {' | '.join(map(str, row))} |" for row in (heads, ["---"] * len(heads), *rows)]


@cache
def _about(name: str) -> str:
    """Return what a file of audits says of itself, its false-alarm rate with it."""
    return " ".join((ast.get_docstring(ast.parse((REPOSITORY / name).read_text(encoding="utf-8"))) or "").split())


def sources_digest() -> str:
    """Return the SHA-256 of what a verdict hangs on: the program, the database's rules and the tests."""
    digest = hashlib.sha256()
    for package in SOURCES:
        for path in sorted((REPOSITORY / package).rglob("*")):
            if path.suffix in (".py", ".sql", ".html") and path.is_file():
                digest.update(f"{path.relative_to(REPOSITORY).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def pytest_configure(config: pytest.Config) -> None:
    path = os.environ.get("EVIDENCE_FILE")
    if path and not hasattr(config, "workerinput"):
        report = Report(Path(path))
        config.pluginmanager.register(report, "evidence report")
        if os.environ.get("DPAL_EVIDENCE_RESUME"):
            os.environ[PASSED] = json.dumps(report.passed)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    part, _, parts = (os.environ.get("DPAL_EVIDENCE_PART") or "1/1").partition("/")
    own = [item for item in items if item.nodeid.startswith((*AUDITS, PLANTING))]
    elsewhere = set(map(id, own)) - set(map(id, own[int(part) - 1 :: int(parts)]))
    passed = set(json.loads(os.environ.get(PASSED, "[]")))
    # Where processes share the work, a name ends with the group it belongs to.
    left_out = [item for item in items if id(item) in elsewhere or _without_group(item.nodeid) in passed]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def _without_group(name: str) -> str:
    head, at, _ = name.rpartition("]@")
    return f"{head}]" if at else name
