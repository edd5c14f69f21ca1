"""Pages of evidence: what was audited when and with which power, and the questions of NIST SP 800-226."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import mark_safe
from django.utils.translation import override
from django.views.decorators.cache import never_cache

from annotation.wording import localized
from learner.access import project_of
from learner.evidence.facts import facts_of
from learner.evidence.report import evidence_of
from learner.evidence.sp800_226 import answered
from learner.releases.cards.page import card_html


@login_required
@never_cache
def evidence(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what shows that the promise of a project holds."""
    project = project_of(request, slug)
    return render(request, "learner/evidence/evidence.html", {"project": project, "sheet": evidence_of(project)})


@login_required
@never_cache
def evaluation(request: HttpRequest, slug: str) -> HttpResponse:
    """Show on one page to print how the project's guarantee answers an evaluator's questions."""
    project = project_of(request, slug)
    document = card_html(answered(facts_of(project), tell=localized))
    context = {"project": project, "document": mark_safe(document)}  # noqa: S308 - escaped there
    return render(request, "learner/evidence/evaluation.html", context)


@login_required
@never_cache
def download_evaluation(request: HttpRequest, slug: str) -> HttpResponse:
    """Send the same as Markdown, in English whatever the reader's language, as every file of a project is."""
    project = project_of(request, slug)
    with override("en"):
        document = answered(facts_of(project))
    response = HttpResponse(document, content_type="text/markdown; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{project.slug}-sp800-226.md"'
    return response
