import pytest

from annotation.models import Role
from annotation.models.history import Action
from annotation.people.services import limits
from privacy.ledger.models import BudgetAccount
from privacy.ledger.selectors import guarantee
from tests import learning
from tests.factories import add_members, make_user
from tests.programs import Program

pytestmark = pytest.mark.django_db(transaction=True)
HIGHER = {"epsilon_limit": 25.0, "delta_limit": 0.0, "reason": "a third model"}


@pytest.fixture
def project(manager):
    return learning.open_trusted(manager)


@pytest.fixture
def second(project):
    person = make_user("second")
    add_members(project, person, role=Role.MANAGER)
    return person


def limit_of(project):
    return guarantee(BudgetAccount.objects.get(pk=project.pool_account_id)).epsilon_limit


def test_one_manager_changes_a_limit_where_nobody_else_is_asked(ask, project):
    answered = ask("POST", "ledger/limits", HIGHER | {"account": project.pool_account.scope})
    assert answered.json() == {"state": "changed", "request": None}
    assert limit_of(project) == 25.0
    entry = ask("GET", "ledger/entries").json()[-1]
    assert (entry["kind"], entry["actor"], entry["reason"]) == ("limit_change", "manager", "a third model")
    assert ask("POST", "ledger/limits", HIGHER | {"account": "project:other:pool"}).status_code == 404
    assert ask("POST", "ledger/limits", HIGHER | {"reason": "  "}).status_code == 422
    assert limit_of(project) == 25.0


def test_a_higher_limit_waits_for_the_second_manager(ask, project, manager, second):
    assert ask("GET", "second-manager").json() == {"needed": False, "request": None}
    assert ask("POST", "second-manager", {"needed": True}).json() == {"needed": True, "request": None}
    asked = ask("POST", "ledger/limits", HIGHER).json()
    assert asked["state"] == "waiting"
    assert limit_of(project) == 20.0
    (row,) = ask("GET", "ledger/limits").json()
    assert (row["request"], row["account"], row["epsilon_limit"], row["state"], row["requested_by"]) == (
        asked["request"],
        project.pool_account.scope,
        25.0,
        "open",
        "manager",
    )
    refused = ask("POST", f"ledger/limits/{row['request']}", {"decision": "approve"})
    assert refused.status_code == 409
    assert refused.json()["code"] == "Another manager must approve your request."
    again = ask("POST", "ledger/limits", HIGHER)
    assert again.status_code == 409
    assert "already waits" in again.json()["code"]
    agreed = Program(second, project)("POST", f"ledger/limits/{row['request']}", {"decision": "approve"})
    assert (agreed.json()["state"], agreed.json()["decided_by"]) == ("approved", "second")
    assert limit_of(project) == 25.0
    assert ask("GET", "ledger/entries").json()[-1]["approved_by"] == "second"
    late = ask("POST", f"ledger/limits/{row['request']}", {"decision": "refuse"})
    assert late.status_code == 409
    assert "This request was decided, withdrawn or" in late.json()["code"]
    assert Action.objects.get(route="api:decide_limit").target == {"request_id": row["request"]}


def test_who_asked_takes_it_back_and_another_refuses(ask, project, second):
    limits.demand_second_manager(project=project)
    states = []
    for program in (ask, Program(second, project)):
        number = ask("POST", "ledger/limits", HIGHER).json()["request"]
        states.append(program("POST", f"ledger/limits/{number}", {"decision": "refuse"}).json()["state"])
    assert states == ["withdrawn", "refused"]
    assert limit_of(project) == 20.0
