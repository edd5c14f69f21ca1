"""Projects and releases a person may see, and the cost beside an entry."""

from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from annotation import access
from annotation.models import Membership, Project, Role
from annotation.selectors import seen_by
from learner.models import ModelRelease
from learner.pools import selectors
from privacy.accounting.cost import atto_shown, nano_shown
from privacy.ledger.models import LedgerEntry


@dataclass(frozen=True, slots=True)
class Costed:
    """A ledger entry, or a round with its entry, and what it cost."""

    what: Any
    epsilon: float | None
    delta: float | None

    @classmethod
    def of(cls, what: Any, entry: LedgerEntry | None) -> "Costed":
        if entry is None:
            return cls(what, None, None)
        return cls(what, nano_shown(entry.epsilon_nano or 0), atto_shown(entry.delta_atto))


def project_of(request: HttpRequest, slug: str) -> Project:
    """Return a project whose releases the person may see; an archived or deleted one can only be read."""
    project = get_object_or_404(seen_by(request.user, selectors.projects_with_models(request.user)), slug=slug)
    if request.method == "POST":
        access.refuse_if_closed(project)
    return project


def release_of(request: HttpRequest, slug: str, version: int) -> ModelRelease:
    project = project_of(request, slug)
    release: ModelRelease = get_object_or_404(selectors.releases_of(project), version=version)
    release.project = project
    return release


def may_manage(request: HttpRequest, project: Project) -> bool:
    return Membership.objects.filter(project=project, user=request.user.pk, role=Role.MANAGER).exists()


def managed_project_of(request: HttpRequest, slug: str) -> Project:
    project = project_of(request, slug)
    if not may_manage(request, project):
        raise Http404
    return project
