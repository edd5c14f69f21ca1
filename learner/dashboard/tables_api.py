"""REST route of the dashboard's tables, row by row as in their files."""

from datetime import date
from typing import Annotated, Any, Final

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import override
from ninja import Query

from annotation.work.reads import Answer, Reads
from annotation.work.rest import Moment, Page, RoomRouter, page_of, require_scope
from annotation.work.services.tokens import Scope
from learner.access import project_of
from learner.dashboard.reading import plain_rows, readable_table

router = RoomRouter()


class SpendingRowOut(Answer, reads=Reads.LEDGER):
    """A row of `spending`: what an account had spent at a moment."""

    account: str
    when: Moment
    epsilon_spent: float
    epsilon_left: float
    epsilon_limit: float


class PurposeRowOut(Answer, reads=Reads.LEDGER):
    """A row of `purposes`: what an account spent on one mechanism, round, release or person."""

    account: str
    by: str
    name: str
    operations: int
    epsilon: float
    rho: float
    delta: float
    percent: float


class ReleaseRowOut(Answer, reads=Reads.SETTINGS):
    """A row of `releases`: a version's accuracy on a public test set, with its 95 % interval."""

    project: str
    version: int
    test_set: str
    examples: int
    accuracy: Annotated[float, Reads.MEASURED]
    low: Annotated[float, Reads.MEASURED]
    high: Annotated[float, Reads.MEASURED]


class LabelDayOut(Answer, reads=Reads.MANAGED):
    """A row of `labels`: a day's answers and labels."""

    day: date
    answers: int
    answers_so_far: int
    agreed: int
    unanimous: int


class AnnotatorRowOut(Answer, reads=Reads.MANAGED):
    """A row of `annotators`: what became of somebody's answers."""

    person: str
    answers: int
    like_the_majority: int
    unlike_the_majority: int
    checks_right: int
    checks_answered: int


# A token reads a table as it reads what the table is made of. The table of work is a list of its own, which says more.
SCOPES: Final = {
    "spending": Scope.LEDGER_READ,
    "purposes": Scope.LEDGER_READ,
    "releases": Scope.MODELS_READ,
    "labels": Scope.LABELS_READ,
    "annotators": Scope.LABELS_READ,
}


@router.pages(
    "projects/{slug:slug}/dashboard/{name}",
    response=list[SpendingRowOut | PurposeRowOut | ReleaseRowOut | LabelDayOut | AnnotatorRowOut],
    summary="Rows of the dashboard's table spending, purposes, releases, labels or annotators, in English",
)
def list_dashboard_rows(request: HttpRequest, response: HttpResponse, slug: str, name: str, page: Query[Page]) -> Any:
    scope = SCOPES.get(name)
    if scope is None:
        raise Http404
    require_scope(request, scope)
    with override("en"):
        table = readable_table(request, project_of(request, slug), name)
    names = [column.name for column in table.columns]
    rows = page_of(plain_rows(table), page, request=request, response=response)
    return [dict(zip(names, row, strict=True)) for row in rows]
