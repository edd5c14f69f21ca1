"""The statement of a project's accounts: read in pages, checked, and taken away as a file."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache

from annotation import selectors
from annotation.budget import presenters
from annotation.budget.downloads import csv_response, statement_response
from annotation.budget.forms import StatementForm
from annotation.budget.lines import statement_page
from annotation.budget.services.document import verdicts
from annotation.budget.spending import statement_csv
from annotation.models import Project, Role
from privacy.ledger.checkpoints import site_key
from privacy.ledger.selectors import guarantee

LAST_PAGE = 1_000_000


def _project(request: HttpRequest, slug: str) -> Project:
    allowed = selectors.projects_of(request.user, roles=(Role.MANAGER, Role.ENGINEER))
    return get_object_or_404(selectors.seen_by(request.user, allowed), slug=slug)


@login_required
@never_cache
def statement(request: HttpRequest, slug: str) -> HttpResponse:
    """Every operation on the project's accounts in plain sentences; with `?check` all of it is computed again."""
    project = _project(request, slug)
    accounts = list(presenters.statement_accounts(project))
    titles = {account.pk: presenters.account_title(project, account) for account in accounts}
    form = StatementForm(request.GET, accounts=accounts, titles=titles)
    form.is_valid()
    wanted = form.wanted()
    page = statement_page(accounts, titles, wanted, _page_number(request))
    context = {
        "project": project,
        "form": form,
        "open_answers": presenters.open_answers_words(project),
        "page": page,
        "asked_for": wanted.entry,
        "newer": _address(request, page.number - 1),
        "older": _address(request, page.number + 1),
        "heads": [(titles[account.pk], guarantee(account)) for account in accounts],
        "public_key": site_key().public_key,
        "verdicts": list(zip(titles.values(), verdicts(accounts), strict=True)) if "check" in request.GET else [],
    }
    return render(request, "annotation/budget/statement.html", context)


@login_required
def download_csv(request: HttpRequest, slug: str) -> StreamingHttpResponse:
    """Every line of a project's statement, for an auditor's spreadsheet."""
    project = _project(request, slug)
    lines = statement_csv(list(presenters.statement_accounts(project)))
    return csv_response(lines, name=f"{project.slug}-statement")


@login_required
@never_cache
def download_json(request: HttpRequest, slug: str) -> StreamingHttpResponse:
    """Every entry with its hash and the audit's verdict, for an auditor's program."""
    return statement_response(_project(request, slug))


def _page_number(request: HttpRequest) -> int:
    given = request.GET.get("page", "1")
    return min(LAST_PAGE, max(1, int(given))) if given.isascii() and given.isdigit() and len(given) < 8 else 1


def _address(request: HttpRequest, number: int) -> str:
    """Return the query of another page of the same lines."""
    query = request.GET.copy()
    query.pop("check", None)
    query["page"] = str(number)
    return f"?{query.urlencode()}"
