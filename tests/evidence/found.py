"""The report of `make evidence`: audits of the mechanisms and planted faults, read from JSON, written as Markdown."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

FORMAT = "dpal-evidence/1"


class EvidenceUnreadable(Exception):
    """The file is there and holds no evidence."""


@dataclass(frozen=True, slots=True)
class Run:
    """When something was run, by which command, on which sources."""

    command: str
    code: str
    began_at: datetime
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class AuditedFile:
    """A file of audits: what it says of itself with its false-alarm rate, and how its tests ended."""

    file: str
    about: str
    passed: int
    failed: int
    skipped: int


@dataclass(frozen=True, slots=True)
class CanaryRun:
    """A canary sent through one estimator: the bound beside the charge, and how often half the noise was found.

    Attributes
    ----------
    name : str
        Of the estimator with its settings.
    charged, bound : float
        Epsilon that one record is charged, and the highest lower bound that was found; None where only broken twins
        were sent.
    trials : int
        Fits on each side of one canary.
    sent : int
        Canaries through the estimator as it is.
    twins, found : int
        Canaries through a twin with half the noise, and how many of these were found above the charge: the power.
    """

    name: str
    charged: float | None
    bound: float | None
    trials: int
    sent: int
    twins: int
    found: int

    @property
    def holds(self) -> bool:
        """Whether nothing above the charge was found."""
        return self.charged is None or self.bound is None or self.bound <= self.charged


@dataclass(frozen=True, slots=True)
class Audits:
    """A run of all statistical audits, with so many times the trials of the ordinary tests."""

    run: Run
    trials: int
    files: tuple[AuditedFile, ...]
    canaries: tuple[CanaryRun, ...]


@dataclass(frozen=True, slots=True)
class FaultKind:
    """Faults of one kind: on the list, planted in this run, and noticed by every test named for them."""

    kind: str
    listed: int
    planted: int
    noticed: int


@dataclass(frozen=True, slots=True)
class Faults:
    """A run that planted faults."""

    run: Run
    kinds: tuple[FaultKind, ...]

    @property
    def listed(self) -> int:
        """Faults on the list."""
        return sum(each.listed for each in self.kinds)

    @property
    def planted(self) -> int:
        """Faults planted."""
        return sum(each.planted for each in self.kinds)

    @property
    def noticed(self) -> int:
        """Faults noticed."""
        return sum(each.noticed for each in self.kinds)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was run; None says that it was not."""

    audits: Audits | None = None
    faults: Faults | None = None


def read_evidence(path: Path) -> Evidence:
    """Return what a file of evidence says; without a file nothing was run.

    Raises
    ------
    EvidenceUnreadable
        If the file holds something else.
    """
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Evidence()
    except (OSError, ValueError) as error:
        raise EvidenceUnreadable from error
    try:
        if body["format"] != FORMAT:
            raise EvidenceUnreadable
        return Evidence(
            _audits(body["audits"]) if "audits" in body else None, _faults(body["faults"]) if "faults" in body else None
        )
    except (KeyError, TypeError, ValueError) as error:
        raise EvidenceUnreadable from error


def _run(part: Mapping[str, Any]) -> Run:
    moments = (datetime.fromisoformat(part[name]) for name in ("began_at", "ended_at"))
    return Run(str(part["command"]), str(part["code"]), *moments)


def _audits(part: Mapping[str, Any]) -> Audits:
    return Audits(
        _run(part),
        int(part["trials"]),
        tuple(AuditedFile(**each) for each in part["files"]),
        _canaries(part["canaries"]),
    )


def _faults(part: Mapping[str, Any]) -> Faults:
    return Faults(_run(part), tuple(FaultKind(**each) for each in part["kinds"]))


def _canaries(tests: list[Mapping[str, Any]]) -> tuple[CanaryRun, ...]:
    """Put what several tests say of one estimator together."""
    rows = []
    for name in dict.fromkeys(str(each["name"]) for each in tests):
        own = [each for each in tests if each["name"] == name]
        whole = [each for each in own if not each["halved"]]
        halved = [each for each in own if each["halved"]]
        rows.append(
            CanaryRun(
                name=name,
                charged=max((float(each["charged"]) for each in whole), default=None),
                bound=max((float(each["bound"]) for each in whole), default=None),
                trials=max(int(each["trials"]) for each in own),
                sent=len(whole),
                twins=len(halved),
                found=sum(float(each["bound"]) > float(each["charged"]) for each in halved),
            )
        )
    return tuple(rows)


def report_of(evidence: Evidence) -> str:
    """Return the report in Markdown; a part that was not run is left out."""
    lines = ["# Evidence", ""]
    if (audits := evidence.audits) is not None:
        lines += ["## Audits", "", _when(audits.run), "", f"Trials: {audits.trials} times those of the ordinary tests."]
        rows = [
            (one.name, one.trials, one.sent, _epsilon(one.charged), _epsilon(one.bound), f"{one.found} of {one.twins}")
            for one in audits.canaries
        ]
        heads = ("canary", "fits on each side", "sent", "charged", "highest bound", "half the noise found")
        lines += ["", *_table(heads, rows), ""]
        heads = ("file", "audits", "passed", "failed", "left out")
        lines += _table(heads, [(one.file, one.about, one.passed, one.failed, one.skipped) for one in audits.files])
    if (faults := evidence.faults) is not None:
        noticed = f"{faults.noticed} of {faults.planted} planted faults noticed, {faults.listed} listed."
        lines += ["", "## Planted faults", "", _when(faults.run), "", noticed, ""]
        heads = ("kind", "listed", "planted", "noticed")
        lines += _table(heads, [(one.kind, one.listed, one.planted, one.noticed) for one in faults.kinds])
    return "\n".join(lines) + "\n"


def _when(run: Run) -> str:
    return f"`{run.command}`, sources {run.code}, {run.began_at:%Y-%m-%d %H:%M} to {run.ended_at:%Y-%m-%d %H:%M} UTC."


def _epsilon(value: float | None) -> str:
    return "not run" if value is None else f"{value:.3g}"


def _table(heads: tuple[str, ...], rows: list[tuple[object, ...]]) -> list[str]:
    return [f"| {' | '.join(map(str, row))} |" for row in (heads, ["---"] * len(heads), *rows)]
