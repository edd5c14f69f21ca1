import pytest

from annotation.models.history import Action
from learner.models import Round
from learner.pools import prices
from learner.rounds.services import loop
from tests import learning

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(remembered):
    return learning.begin_experts(remembered)


def row_of(ask, kind):
    return next(row for row in ask("GET", "work").json() if row["kind"] == kind)


def test_what_waits_is_stopped_and_started_anew(ask, project):
    loop.advance_project(project_id=project.pk)
    waiting = row_of(ask, "round")
    assert (waiting["state"], waiting["can_cancel"], waiting["can_retry"]) == ("waiting", True, False)
    path = f"work/round/{waiting['id']}"
    refused = ask("POST", f"{path}/retry", {})
    assert (refused.status_code, refused.json()["code"]) == (409, "There is nothing to restart.")
    stopped = ask("POST", f"{path}/cancel", {}).json()
    assert (stopped["state"], stopped["cancelled_by"]) == ("failed", "manager")
    failed = row_of(ask, "round")
    assert failed["error_as_code"]["parameters"] == {"by": "manager"}
    assert (failed["can_retry"], failed["epsilon"]) == (True, prices.round_price(project).epsilon)
    refused = ask("POST", f"{path}/cancel", {})
    assert (refused.status_code, refused.json()["code"]) == (409, "It has already ended.")
    started = ask("POST", f"{path}/retry", {"most_epsilon": failed["epsilon"]}, key="k")
    assert (started.status_code, started.json()["epsilon"]) == (202, failed["epsilon"])
    assert ask("POST", f"{path}/retry", {"most_epsilon": failed["epsilon"]}, key="k").json() == started.json()
    assert [each.state for each in Round.objects.order_by("number")] == ["failed", "waiting"]
    assert [each.route for each in Action.objects.order_by("pk")] == ["api:cancel_work", "api:retry_work"]
