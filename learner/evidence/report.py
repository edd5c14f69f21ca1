"""What shows that a project's promise holds: audits and faults run here, and the canaries of its own versions."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from annotation.models import Project
from learner.evidence.file import Evidence, EvidenceUnreadable, read_evidence
from learner.models import ModelRelease, ReleaseState
from learner.releases.artifacts.environment import code_version


@dataclass(frozen=True, slots=True)
class VersionCanary:
    """One version and the canary that was sent before it was offered; None where none was, or nobody stored which.

    `checks` says what else was looked at: ``passed``, or what was found.
    """

    version: int
    released_at: datetime | None
    checks: dict[str, str]
    code: str
    estimator: str
    asked_at: datetime | None
    trials: int | None
    charged: float | None
    bound: float | None

    @property
    def holds(self) -> bool:
        """Whether nothing above the charge was found."""
        return self.charged is None or self.bound is None or self.bound <= self.charged


@dataclass(frozen=True, slots=True)
class EvidenceSheet:
    """All of it; `readable` is whether the file of audits and faults holds what it should."""

    found: Evidence
    readable: bool
    code: str
    asked: tuple[VersionCanary, ...]


def evidence_of(project: Project) -> EvidenceSheet:
    """Return the evidence a project's engineers and managers read, newest version first."""
    try:
        found, readable = read_evidence(settings.EVIDENCE_PATH), True
    except EvidenceUnreadable:
        found, readable = Evidence(), False
    offered = ModelRelease.objects.filter(project=project).exclude(state=ReleaseState.CANDIDATE)
    releases = offered.select_related("mechanism_audit").order_by("-version")
    return EvidenceSheet(found, readable, code_version(), tuple(_asked(release) for release in releases))


def _asked(release: ModelRelease) -> VersionCanary:
    audit = release.mechanism_audit
    return VersionCanary(
        version=release.version,
        released_at=release.released_at,
        checks=dict(release.checks),
        code=str(release.environment.get("dpal", "")),
        estimator=release.estimator,
        asked_at=None if audit is None else audit.created_at,
        trials=None if audit is None else audit.trials,
        charged=None if audit is None else audit.charged_epsilon,
        bound=None if audit is None else audit.epsilon_lower_bound,
    )
