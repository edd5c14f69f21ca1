"""The statement, and tables, written while they are sent."""

from collections.abc import Iterator

from django.http import StreamingHttpResponse

from annotation.budget import presenters
from annotation.budget.services.document import statement_json
from annotation.models import Project
from privacy.ledger.models import BudgetAccount


def csv_response(lines: Iterator[str], *, name: str) -> StreamingHttpResponse:
    """Send the lines of a table as a file."""
    response = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def statement_response(owner: Project | BudgetAccount) -> StreamingHttpResponse:
    """Send every entry of a project's accounts, or of a population's, with the audit's verdict, for an auditor."""
    accounts = list(presenters.statement_accounts(owner)) if isinstance(owner, Project) else [owner]
    response = StreamingHttpResponse(statement_json(owner, accounts), content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="{owner.slug}-statement.json"'
    return response
