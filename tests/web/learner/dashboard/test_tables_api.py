import csv
import io
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from annotation.models import Project, Role
from annotation.people.services import members
from annotation.work.reads import Reader
from annotation.work.services.tokens import Scope
from dpal_site.api import api
from dpal_site.observables import answers, readers_of
from learner.dashboard import tables_api
from learner.dashboard.reading import OUTSIDE
from tests import learning
from tests.clients import browser_of
from tests.factories import make_user
from tests.programs import Program

pytestmark = pytest.mark.django_db(transaction=True)
ROWS = {
    "spending": tables_api.SpendingRowOut,
    "purposes": tables_api.PurposeRowOut,
    "releases": tables_api.ReleaseRowOut,
    "labels": tables_api.LabelDayOut,
    "annotators": tables_api.AnnotatorRowOut,
}


@pytest.fixture
def project(remembered: Callable[..., Project]) -> Project:
    return learning.begin_experts(remembered, released=True)


def file_rows(person: User, project: Project, name: str, **headers: str) -> list[dict[str, str]]:
    client = browser_of(person, headers=headers)
    answer = client.get(reverse("learner:dashboard_csv", args=[project.slug, name]))
    return list(csv.DictReader(io.StringIO(answer.getvalue().decode(), newline="")))


def as_text(row: dict[str, Any]) -> dict[str, str]:
    written = {name: "" if value is None else str(value) for name, value in row.items()}
    return written | ({"when": written["when"].replace("Z", "+00:00")} if "when" in written else {})


def test_each_table_has_the_rows_of_its_file(project: Project, manager: User) -> None:
    ask = Program(manager, project)
    for name, schema in ROWS.items():
        rows = ask("GET", f"dashboard/{name}").json()
        assert rows, name
        assert all(list(row) == list(schema.model_fields) for row in rows), name
        assert [as_text(row) for row in rows] == file_rows(manager, project, name), name


def test_engineers_read_what_was_spent_and_released(project: Project) -> None:
    engineer = make_user()
    members.add_member(project=project, user=engineer, role=Role.ENGINEER)
    ask = Program(engineer, project)
    assert {name for name in ROWS if ask("GET", f"dashboard/{name}").status_code == 200} == set(OUTSIDE)
    described, declared = api.get_openapi_schema()["components"]["schemas"], answers()
    for name, schema in ROWS.items():
        place = schema.__name__
        for field in described[place]["properties"]:
            readers = readers_of(declared, [place], field)
            assert (Reader.ENGINEER in readers) == (name in OUTSIDE), (place, field)


def test_a_token_reads_a_table_as_it_reads_what_it_is_made_of(project: Project, manager: User) -> None:
    """Where a token may not read the ledger, it reads no sums over it either."""
    for name, needed in tables_api.SCOPES.items():
        assert Program(manager, project, needed)("GET", f"dashboard/{name}").status_code == 200
        others = [scope for scope in Scope if scope != needed]
        assert Program(manager, project, *others)("GET", f"dashboard/{name}").status_code == 403
