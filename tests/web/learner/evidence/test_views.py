"""The page of evidence: figures from what was run, and "not run here" where nothing was."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Role
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from learner.evidence.file import FORMAT
from learner.models import MechanismAudit
from learner.releases.artifacts.environment import code_version
from learner.releases.services import checks
from tests import learning
from tests.factories import add_members, make_project, make_user
from tests.markup import tight

pytestmark = pytest.mark.django_db(transaction=True)
RUN = {
    "command": "make evidence",
    "code": "0.1+aaaa",
    "began_at": "2026-11-20T10:00:00+00:00",
    "ended_at": "2026-11-20T12:30:00+00:00",
}
REPORTED = {"name": "sums", "halved": False, "charged": 1.0, "bound": 0.71, "trials": 2000}
AUDITS = RUN | {
    "trials": 20,
    "files": [
        {
            "file": "tests/statistical/x.py",
            "about": "Errs once in 10,000 seeds.",
            "passed": 7,
            "failed": 1,
            "skipped": 0,
        }
    ],
    "canaries": [
        REPORTED,
        REPORTED | {"bound": 0.83},
        REPORTED | {"halved": True, "bound": 1.4},
        REPORTED | {"halved": True, "bound": 0.9},
        REPORTED | {"name": "gradients", "halved": True, "bound": 3.0},
    ],
}
FAULTS = RUN | {
    "kinds": [
        {"kind": "Models", "listed": 33, "planted": 33, "noticed": 33},
        {"kind": "Gates", "listed": 11, "planted": 5, "noticed": 4},
    ]
}


@pytest.fixture
def file(settings, tmp_path) -> Path:
    settings.EVIDENCE_PATH = tmp_path / "evidence.json"
    return settings.EVIDENCE_PATH


def seen(project, role=Role.ENGINEER) -> tuple[str, dict]:
    """Return the page as somebody of a role reads it, and what REST says to the same person."""
    person, client = make_user(), Client()
    add_members(project, person, role=role)
    client.force_login(person)
    page = client.get(reverse("learner:evidence", args=[project.slug]))
    _, secret = tokens.create_token(user=person, name="t", scopes=[Scope.MODELS_READ], lifetime=timedelta(days=1))
    address = f"/api/v1/projects/{project.slug}/evidence"
    told = Client().get(address, headers={"Authorization": f"Bearer {secret}"})
    assert page.status_code == told.status_code == 200
    return tight(page.content.decode()), told.json()


def test_where_nothing_was_run_it_says_so(file):
    page, told = seen(make_project())
    assert page.count("not run here") == page.count("<code>make evidence</code>") == 2
    assert "No model is released yet." in page
    assert (told["audits"], told["faults"], told["releases"]) == (None, None, [])


def test_figures_are_those_of_the_file(file):
    file.write_text(json.dumps({"format": FORMAT, "audits": AUDITS, "faults": FAULTS}))
    page, told = seen(make_project(), Role.MANAGER)
    assert "With 20 times the trials" in page
    assert "Errs once in 10,000 seeds." in page
    assert "37 of 38 faults were noticed by every test named for them; 44 are on the list." in page
    # The highest bound beside the charge, and the power: one of two twins was found.
    sums, gradients = told["audits"]["canaries"]
    assert (sums["charged"], sums["bound"], sums["sent"], sums["twins"], sums["found"]) == (1.0, 0.83, 2, 2, 1)
    assert (gradients["charged"], gradients["sent"], gradients["found"]) == (None, 0, 1)
    assert "1 of 2" in page
    assert "0.83" in page
    assert datetime.fromisoformat(told["faults"]["run"]["ended_at"]) == datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
    assert page.count("These are other sources than those this site runs.") == 2


def test_the_sites_own_sources_are_told_apart(file):
    file.write_text(json.dumps({"format": FORMAT, "faults": FAULTS | {"code": code_version()}}))
    page, told = seen(make_project())
    assert "These are other sources" not in page
    assert told["audits"] is None
    assert told["faults"]["run"]["code"] == told["code"]


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"format": "x"}', json.dumps({"format": FORMAT, "audits": {"trials": 1}})]
)
def test_a_file_of_something_else_shows_nothing(file, content):
    file.write_text(content)
    page, told = seen(make_project())
    assert "cannot be read" in page
    assert not told["readable"]
    assert told["audits"] is told["faults"] is None


def test_a_version_stands_beside_its_canary(file):
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    release = learning.run_to_release(project, make_user(), version=1)
    page, told = seen(project)
    audit = MechanismAudit.objects.get()
    assert release.mechanism_audit == audit == checks.mechanism_audit(release)
    (row,) = told["releases"]
    assert (row["version"], row["trials"], row["code"]) == (1, audit.trials, code_version())
    assert (row["charged"], row["bound"]) == (audit.charged_epsilon, audit.epsilon_lower_bound)
    assert row["bound"] <= row["charged"]
    assert row["checks"]["ledger"] == "passed"
    assert re.search(rf'<td class="n"[^>]*>{audit.trials}</td>', page)


def test_the_page_is_reached_from_statement_and_releases(file):
    project, person, client = make_project(), make_user(), Client()
    add_members(project, person, role=Role.ENGINEER)
    client.force_login(person)
    address = reverse("learner:evidence", args=[project.slug])
    for name in ("annotation:statement", "learner:releases"):
        assert address in client.get(reverse(name, args=[project.slug])).content.decode()
