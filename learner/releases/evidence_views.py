"""The page of evidence: what was audited when and with which power, and the command that does it again."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from learner.access import project_of
from learner.releases.evidence_report import evidence_of


@login_required
@never_cache
def evidence(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what shows that the promise of a project holds."""
    project = project_of(request, slug)
    return render(request, "learner/releases/evidence.html", {"project": project, "sheet": evidence_of(project)})
