"""Whatever a program sends, no route breaks: requests made up from the OpenAPI description itself."""

from datetime import timedelta

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from annotation.models import Role
from annotation.services import projects, tokens
from annotation.services.tokens import Scope
from dpal_site.wsgi import application
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
REQUESTS_PER_ROUTE = 6
MINIMUM_ROUTES = 14


@pytest.fixture(autouse=True)
def own_counter(settings, tmp_path, monkeypatch) -> None:
    settings.LEDGER_COUNTER_PATH = tmp_path / "ledger-counter.json"
    settings.ALLOWED_HOSTS = ["*"]
    monkeypatch.setattr("celery.app.base.Celery.send_task", lambda *args, **kwargs: None)


def test_no_request_is_answered_worse_than_4xx():
    person = make_user()
    project = learning.open_trusted(person)
    learning.upload(project, [[text] for text in learning.sentences(20)], ["text"])
    projects.add_member(project=project, user=person, role=Role.ANNOTATOR)
    _, secret = tokens.create_token(user=person, name="t", scopes=list(Scope), lifetime=timedelta(days=1))
    headers = {"Authorization": f"Bearer {secret}"}
    schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", application)
    tried = 0
    for found in schema.get_all_operations():
        operation = found.ok()

        @seeded(1)
        @settings(
            max_examples=REQUESTS_PER_ROUTE,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def ask(case):
            # Half of what is made up names the one project there is, so that bodies are read, too.
            if "slug" in case.path_parameters and len(case.path_parameters["slug"]) % 2 == 0:
                case.path_parameters["slug"] = project.slug
            response = case.call(headers=headers)
            assert response.status_code < 500, (case.method, case.path, response.status_code)
            if response.status_code >= 400:
                assert response.headers["content-type"][0].startswith("application/problem+json")

        ask()
        tried += 1
    assert tried >= MINIMUM_ROUTES
