"""What was spent on what, what is left, and changing a limit."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from annotation import selectors
from annotation.budget import presenters
from annotation.budget.population_sheets import project_limit_words
from annotation.models import Role
from annotation.work.polling import moving_page


@login_required
def budget(request: HttpRequest, slug: str) -> HttpResponse:
    """Limits, spending and the statement of a project's accounts."""
    allowed = selectors.projects_of(request.user, roles=(Role.MANAGER, Role.ENGINEER))
    project = get_object_or_404(selectors.seen_by(request.user, allowed), slug=slug)
    common_limit = project_limit_words(project)
    facts = (presenters.ledger_facts(project), common_limit)
    return moving_page(
        request,
        "annotation/budget/budget.html",
        facts,
        lambda: {
            "project": project,
            "sheets": presenters.detailed_sheets(project, compose="compose" in request.GET),
            "may_change": project.viewer_manages,
            "common_limit": common_limit,
        },
    )
