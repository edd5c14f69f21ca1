from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from addons.prolific.models import BonusSheet, CrowdStudy, CrowdVerdict, PlatformAccount
from addons.prolific.services import accounts
from annotation.models.history import Action
from annotation.models.people import IdempotentAnswer
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from tests.prolific_server import TOKEN
from tests.studies import come, connect, turn

pytestmark = pytest.mark.django_db


def ask(client, project, person, scope=Scope.PROJECTS_READ):
    _, secret = tokens.create_token(user=person, name="t", scopes=[scope], lifetime=timedelta(days=1))
    return client.get(f"/api/v1/projects/{project.slug}/studies", headers={"Authorization": f"Bearer {secret}"})


def test_a_manager_reads_where_studies_stand(server, published, crowd, manager, client):
    come(server, published, "ann")
    server.faults.append(("GET", ".*/submissions/", 500))
    turn(published)
    (found,) = ask(client, crowd, manager).json()
    assert found["study"] == published.pk
    assert (found["state"], found["places"], found["places_taken"], found["approved"]) == ("ACTIVE", 4, 1, 0)
    assert (found["pay_per_place"], found["pay_per_hour"]) == ("2.00", "20.00")
    assert (found["cost_so_far"], found["promised_at_most"]) == ("0.00", "12.00")
    assert found["fault"] == "Prolific cannot be reached: HTTP 500"
    assert found["fault_as_code"]["parameters"]["reason"]["code"] == "HTTP 500"


SENT = {
    "name": "Voice queries",
    "description": "Say what each means.",
    "places": 4,
    "pay_per_place": "2.00",
    "minutes": 6,
}
WHY = "The same class was given to every question, within a second each, and two hidden checks were answered wrongly."


class Program:
    def __init__(self, client, project, person, scopes=(Scope.PROJECTS_READ, Scope.STUDIES_WRITE)):
        _, secret = tokens.create_token(user=person, name="t", scopes=list(scopes), lifetime=timedelta(days=1))
        self.client, self.base = client, f"/api/v1/projects/{project.slug}/studies"
        self.headers = {"Authorization": f"Bearer {secret}"}

    def get(self, path=""):
        return self.client.get(self.base + path, headers=self.headers)

    def post(self, path, body, **headers):
        return self.client.post(self.base + path, body, content_type="application/json", headers=self.headers | headers)

    def delete(self, path):
        return self.client.delete(self.base + path, headers=self.headers)


@pytest.fixture
def program(client, crowd, manager):
    return Program(client, crowd, manager)


def test_a_program_does_all_that_the_pages_do(server, crowd, manager, program):
    connect(crowd, manager)
    sent = program.post("", SENT, **{"Idempotency-Key": "one"})
    assert sent.status_code == 201
    assert program.post("", SENT, **{"Idempotency-Key": "one"}).json() == sent.json()
    (study,) = CrowdStudy.objects.all()
    at = f"/{study.pk}"
    assert (study.places, study.reward_cents, study.minutes) == (4, 200, 6)
    turn(study)
    assert program.get(at).json()["changes"] == ["publish", "discard", "look"]
    assert program.post(f"{at}/changes", {"change": "publish"}).status_code == 200
    turn(study)
    done, left = come(server, study, "ann"), come(server, study, "ben", done=False)
    turn(study)
    found = program.get(at).json()
    assert found["changes"] == ["pause", "stop", "approve", "look"]
    people = {each["participant"]: each for each in found["participations"]}
    assert people[done.user.username]["is_complete"]
    assert not people[left.user.username]["is_complete"]
    assert "pid-of-ann" not in program.get(at).content.decode()
    rejected = {"participation": people[left.user.username]["participation"], "decision": "reject", "message": WHY}
    assert program.post(f"{at}/decisions", rejected).json()["detail"] == "Choose a reason that Prolific knows."
    if people[left.user.username]["waits_for_decision"]:
        assert program.post(f"{at}/decisions", rejected | {"category": "NO_CODE"}).status_code == 204
    program.post(f"{at}/changes", {"change": "approve"})
    assert CrowdVerdict.objects.filter(kind="APPROVE").count() == 1
    given = {"key": str(uuid4()), "bonuses": [{"participant": done.user.username, "amount": "1.50"}]}
    assert [program.post(f"{at}/bonuses", given).status_code for _ in range(2)] == [204, 204]
    (sheet,) = BonusSheet.objects.all()
    assert [line.amount_cents for line in sheet.lines.all()] == [150]
    assert program.post(f"{at}/bonuses/settle", {"came": True}).status_code == 422
    # An answer that is lost leaves it to the manager to look.
    server.faults.append(("POST", ".*/pay/", 500))
    for _ in range(3):
        turn(study)
    BonusSheet.objects.update(paying_at=timezone.now() - timedelta(hours=2))
    turn(study)
    assert program.get(at).json()["bonuses"][0]["state"] == "unclear"
    assert program.post(f"{at}/bonuses/settle", {"came": True}).status_code == 204
    assert program.get(at).json()["bonuses"] == [{"key": given["key"], "state": "paid", "fault": ""}]


def test_a_bonus_is_given_to_whom_it_names_and_to_nobody_twice(server, published, program):
    done = come(server, published, "ann")
    turn(published)
    one = {"participant": done.user.username, "amount": 1}
    at = f"/{published.pk}/bonuses"
    for bonuses in ([one, one], [one | {"participant": "nobody"}], [one | {"amount": "0"}]):
        assert program.post(at, {"key": str(uuid4()), "bonuses": bonuses}).status_code == 422
    assert not BonusSheet.objects.exists()
    elsewhere = {"participation": 10**6, "decision": "return", "message": "it is not done"}
    refused = program.post(f"/{published.pk}/decisions", elsewhere)
    assert "This participation has already been decided" in refused.json()["detail"]


UNCONNECTED = {"is_connected": False, "fee_percent": None, "currency": "", "fault": "", "fault_as_code": None}


def test_a_token_is_stored_replaced_and_forgotten_and_never_given_back(server, crowd, program, capfd):
    assert program.get("/account").json() == UNCONNECTED
    wrong, right = ({"token": token, "fee_percent": "42.50"} for token in ("a-mistyped-token", TOKEN))
    answers = [program.post("/account", wrong)]
    accounts.check_account(project_id=crowd.pk)
    answers.append(program.get("/account"))
    assert answers[-1].json()["fault_as_code"]["code"] == answers[-1].json()["fault"] != ""
    # The same press twice is one, and the row that remembers it does not hold what was sent.
    answers += [program.post("/account", right, **{"Idempotency-Key": "one"}) for _ in range(2)]
    assert [each.status_code for each in answers] == [200] * 4
    (account,) = PlatformAccount.objects.all()
    assert accounts.interface_of(account).token == TOKEN
    accounts.check_account(project_id=crowd.pk)
    answers.append(program.get("/account"))
    connected = {"is_connected": True, "fee_percent": "42.50", "currency": "GBP", "fault": "", "fault_as_code": None}
    assert answers[-1].json() == connected
    assert program.delete("/account").status_code == 204
    assert program.get("/account").json() == UNCONNECTED
    # The log of actions says that it changed, and no log says to what.
    actions = list(Action.objects.order_by("pk"))
    assert [each.route for each in actions] == ["api:connect_platform"] * 2 + ["api:disconnect_platform"]
    said = "".join(each.content.decode() for each in answers) + capfd.readouterr().err
    said += "".join(str(vars(row)) for kind in (Action, IdempotentAnswer) for row in kind.objects.all())
    assert TOKEN not in said
    assert "a-mistyped-token" not in said


@pytest.mark.parametrize(
    "body",
    [
        {"token": "two words", "fee_percent": "40"},
        {"token": "short", "fee_percent": "40"},
        {"token": "x" * 401, "fee_percent": "40"},
        {"token": TOKEN, "fee_percent": "101"},
        {"token": TOKEN},
    ],
)
def test_what_is_no_token_is_refused_without_being_repeated(server, crowd, program, body):
    refused = program.post("/account", body)
    assert refused.status_code == 422
    assert body["token"] not in refused.content.decode()
    assert not PlatformAccount.objects.exists()
