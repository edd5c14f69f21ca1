"""The statement, written while it is sent."""

from django.http import StreamingHttpResponse

from annotation.models import Project
from annotation.statement import presenters
from annotation.statement.services.document import statement_json
from privacy.models import Population


def statement_response(owner: Project | Population) -> StreamingHttpResponse:
    """Send every entry of a project's accounts, or of a population's, with the audit's verdict, for an auditor."""
    accounts = list(presenters.statement_accounts(owner)) if isinstance(owner, Project) else [owner.account]
    response = StreamingHttpResponse(statement_json(owner, accounts), content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="{owner.slug}-statement.json"'
    return response
