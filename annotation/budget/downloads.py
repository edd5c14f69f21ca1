"""The statement, and tables, written while they are sent."""

from collections.abc import Iterator

from django.http import StreamingHttpResponse

from annotation.budget import presenters
from annotation.budget.services import statement_json
from annotation.models import Project
from privacy.ledger.models import BudgetAccount


def csv_response(lines: Iterator[str], *, name: str) -> StreamingHttpResponse:
    response = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def statement_response(owner: Project | BudgetAccount) -> StreamingHttpResponse:
    accounts = list(presenters.statement_accounts(owner)) if isinstance(owner, Project) else [owner]
    response = StreamingHttpResponse(statement_json(owner, accounts), content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="{owner.slug}-statement.json"'
    return response
