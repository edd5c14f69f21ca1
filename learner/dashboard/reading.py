"""Tables of the dashboard and who may read them, for its page, its files and its route."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest

from annotation.budget import presenters
from annotation.models import Project
from learner.access import may_manage
from learner.dashboard import tables
from privacy.ledger.models import BudgetAccount

# What engineers see, too; the rest is for those inside.
OUTSIDE = ("spending", "purposes", "releases")


def readable_table(request: HttpRequest, project: Project, name: str) -> tables.Table:
    accounts: list[BudgetAccount] = list(presenters.statement_accounts(project))
    found: dict[str, Callable[[], tables.Table]] = {
        "spending": lambda: tables.spending_table(project, accounts),
        "purposes": lambda: tables.purposes_table(project, accounts),
        "releases": lambda: tables.releases_table(project),
        "labels": lambda: tables.labels_table(project),
        "annotators": lambda: tables.annotators_table(project),
        "work": lambda: tables.work_table(project),
    }
    if name not in found or not (name in OUTSIDE or may_manage(request, project)):
        raise Http404
    return found[name]()


def plain_rows(table: tables.Table) -> list[list[Any]]:
    return [[tables.utc(value) if isinstance(value, datetime) else value for value in row] for row in table.rows]
