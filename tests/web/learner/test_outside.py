import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, combinations
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from django.db import transaction
from django.test import Client

from annotation.models import Membership, Query, QueryState, Role
from annotation.people.services import members
from annotation.questions.services import labels, queue
from learner.models import Round
from learner.releases import storage
from learner.releases.services import versions as model_versions
from learner.rounds.services import loop, selection
from tests import learning
from tests.clients import browser_of, program_of
from tests.factories import make_annotators, make_user, write_settings

pytestmark = pytest.mark.django_db(transaction=True)
OVERLAP = 3
# A time of day with a part of a second.
FINE = re.compile(r"[^\s\"]*\d\d:\d\d:\d\d[.,]\d[^\s\"]*")


@pytest.fixture
def crowd(remembered):
    return remembered("a crowd with half of its texts asked", half_asked)


def half_asked():
    project = learning.open_crowd(make_user(), overlap=OVERLAP, labels_per_release=8, round_size=8)
    learning.fill_crowd(project, texts=32)
    make_annotators(project, OVERLAP + 2)
    learning.work_off(project)
    settle(project)
    learning.work_off(project, version=1)
    write_settings(project, labels_per_release=1000)
    assert next_round(project).number == 2
    assert Query.objects.exclude(state=QueryState.UNASKED).count() == 16 == Query.objects.count() // 2
    project.refresh_from_db()
    return project


def settle(project, opinions: Mapping[int, tuple[int, ...]] = MappingProxyType({})) -> None:
    """Have people answer whatever is open: truthfully, but for the questions whose `opinions` are given."""
    people = [member.user for member in Membership.objects.filter(project=project, role="annotator").order_by("pk")]
    for place, person in enumerate(people):
        while (held := queue.claim_next(project=project, user=person)) is not None:
            opinion = opinions.get(held.query_id)
            choice = learning.truth_of(held.query.text) if opinion is None else opinion[place]
            labels.submit_label(assignment=held, choice=choice)


def engineer_of(project) -> Client:
    person = make_user()
    members.add_member(project=project, user=person, role=Role.ENGINEER)
    return program_of(person)


def read(engineer: Client, project, what: str) -> Any:
    answer = engineer.get(f"/api/v1/projects/{project.slug}/{what}?limit=200")
    assert answer.status_code == 200
    return answer.json()


@contextmanager
def taken_back() -> Iterator[None]:
    outer = transaction.atomic()
    # As Django's own test case marks its transaction: what must be durable may run inside, and be undone.
    outer._from_testcase = True  # type: ignore[attr-defined]
    # The thread that keeps a lease sees no row of an open transaction, and would take it for lost.
    with pytest.MonkeyPatch.context() as patch, outer:
        patch.setattr("annotation.work.services.attempts.Lease._keep", lambda lease: None)
        yield
        transaction.set_rollback(True)


def next_round(project) -> Round:
    loop.advance_project(project_id=project.pk)
    chosen = Round.objects.filter(project=project).latest("number")
    loop.run_round(round_id=chosen.pk)
    chosen.refresh_from_db()
    return chosen


def told(engineer: Client, project) -> dict[str, Any]:
    moving = {"created_at", "finished_at", "hash", "output_digest"}
    found = {what: read(engineer, project, what) for what in ("rounds", "ledger/entries", "ledger")}
    for rows in found.values():
        for row in rows:
            for name in moving | {"chain_head"}:
                row.pop(name, None)
    return found


def handed_out(project) -> list[tuple[int, int]]:
    waiting = Query.objects.filter(project=project, state=QueryState.OPEN).order_by("priority", "pk")
    return list(waiting.values_list("pk", "open_slots"))


def asked_in(number: int) -> list[int]:
    return list(Query.objects.filter(round_number=number).order_by("priority").values_list("pk", flat=True))


def test_no_digest_in_the_ledger_is_found_by_trying_ids(crowd):
    """The ids of one round are few and small: an engineer tries all of them, in the order asked or in any."""
    engineer = engineer_of(crowd)
    rounds_asked = [asked_in(1), asked_in(2)]
    settle(crowd, dict.fromkeys(sorted(asked_in(2))[:3], (0, 1, 1)))
    assert next_round(crowd).selected
    shown = {entry["output_digest"] for entry in read(engineer, crowd, "ledger/entries") if entry["output_digest"]}
    everything = sorted(asked_in(1) + asked_in(2))
    again = Query.objects.filter(state=QueryState.OPEN).order_by("priority")
    guesses = chain(
        [*rounds_asked, list(again.values_list("pk", flat=True))],
        *(combinations(everything, size) for size in (1, 2, 3, 4)),
    )
    found = [ids for ids in guesses if hashlib.sha256(np.array(ids, dtype="<i8").tobytes()).hexdigest() in shown]
    assert found == []


def test_what_is_asked_next_and_when_follows_no_answer(crowd):
    """One answer of three turned over: a doubt about one question, or about which class its majority names."""
    engineer = engineer_of(crowd)
    first, second = asked_in(2)[:2]
    worlds = {
        "alike": {},
        "one doubt": {first: (0, 1, 1)},
        "another": {second: (1, 0, 1)},
        "both": {first: (1, 1, 0), second: (0, 0, 1)},
    }
    seen = {}
    for name, opinions in worlds.items():
        with taken_back():
            settle(crowd, opinions)
            next_round(crowd)
            seen[name] = (told(engineer, crowd), handed_out(crowd))
    assert all(world == seen["alike"] for world in seen.values())


def test_when_a_model_is_trained_follows_no_answer():
    """Two people agree on a question or they do not; without any label there is a model all the same."""
    project = learning.open_crowd(make_user(), overlap=2, labels_per_release=8, round_size=8, maximum_releases=2)
    learning.fill_crowd(project, texts=16)
    make_annotators(project, 4)
    learning.work_off(project)
    engineer = engineer_of(project)
    asked = asked_in(1)
    worlds: list[dict[int, tuple[int, ...]]] = [{}, {asked[0]: (0, 1)}, dict.fromkeys(asked, (0, 1))]
    seen = []
    for opinions in worlds:
        with taken_back():
            settle(project, opinions)
            assert Query.objects.filter(state=QueryState.DISPUTED).count() == len(opinions)
            learning.work_off(project)
            settle(project, dict.fromkeys(asked, (0, 1, 0, 1)))
            learning.work_off(project)
            seen.append((told(engineer, project), len(handed_out(project)), versions(engineer, project)))
    assert seen[0][2] == [(2, 16), (1, 8)]
    assert seen[1:] == [seen[0]] * 2


def versions(engineer: Client, project) -> list[tuple[int, int]]:
    return [(model["version"], model["questions_asked"]) for model in read(engineer, project, "models")]


def test_rounds_say_nothing_of_a_failure(crowd):
    """Why a step failed is an output of what it read; engineers see that it did."""
    engineer = engineer_of(crowd)
    Round.objects.filter(number=1).update(state="failed", error="No answer leaves a doubt any more.")
    _newest, row = read(engineer, crowd, "rounds")
    assert (row["state"], row["error"]) == ("failed", "")
    manager = crowd.created_by
    inside = program_of(manager)
    assert read(inside, crowd, "rounds")[1]["error"] == "No answer leaves a doubt any more."


@pytest.mark.slow
def test_no_time_is_finer_than_a_second(crowd):
    """How long a training or a choice took, to the millisecond, tells something of what it read."""
    engineer, person = engineer_of(crowd), Client()
    person.force_login(Membership.objects.get(project=crowd, role=Role.ENGINEER).user)
    api, pages = f"/api/v1/projects/{crowd.slug}", f"/projects/{crowd.slug}"
    rest = ("/rounds", "/models", "/models/1", "/ledger", "/ledger/entries", "/ledger/statement")
    bodies = [body_of(engineer.get(f"{api}{route}")) for route in rest]
    looked_at = ("/releases/", "/releases/1/", "/budget/", "/budget/statement/", "/budget/statement.csv", "/dashboard/")
    bodies += [body_of(person.get(f"{pages}{page}")) for page in (*looked_at, "/dashboard/spending.csv")]
    assert not [found for body in bodies for found in FINE.findall(body)]
    statement = json.loads(bodies[rest.index("/ledger/statement")])
    moments = [entry["created_at"] for account in statement["accounts"] for entry in account["entries"]]
    assert moments
    assert {moment % 1_000_000 for moment in moments} == {0}


def body_of(answer: Any) -> str:
    assert answer.status_code == 200
    # When a document is made is the reader's own doing.
    return re.sub(r'"made_at": "[^"]*"', '"made_at": ""', answer.getvalue().decode())


@pytest.fixture
def project(remembered):
    return remembered("two releases of experts", lambda: learning.released_experts(2))


def client_of(project, role: str, scope: str = "models:read") -> Client:
    person = make_user()
    members.add_member(project=project, user=person, role=role)
    return program_of(person, scope)


def test_models_are_listed_newest_first_with_their_guarantee(project):
    body = client_of(project, Role.ENGINEER).get(f"/api/v1/projects/{project.slug}/models").json()
    assert [model["version"] for model in body] == [2, 1]
    newest = body[0]
    assert newest["guarantee"][0]["limit_epsilon"] == 20.0
    assert newest["guarantee"][0]["spent_epsilon"] > 4.0
    assert newest["questions_asked"] == 24
    assert [model["rounds"] for model in body] == [[1, 2], [1]]
    measured = newest["evaluations"][0]
    assert measured["accuracy"] == measured["correct"] / measured["examples"]
    assert measured["measures"]["macro_f1"]["low"] <= measured["measures"]["macro_f1"]["value"]
    assert measured["no_privacy"]["accuracy"] is None
    assert measured["no_privacy"]["said"].startswith("No simulation for these settings yet")
    assert {"from", "to", "correct"} <= set(measured["measures"]["reliability"][0])
    assert newest["checks"] == dict.fromkeys(("entries", "ledger", "mechanism", "files"), "passed")
    assert newest["released_at"] >= newest["created_at"]
    assert newest["environment"]["dpal"]
    assert newest["public_key"] == storage.signer().public_key
    assert newest["configuration"]["selection"] == "top_c"
    assert "guidelines" not in newest["configuration"]
    low, high = measured["interval"]
    assert low <= measured["accuracy"] <= high
    assert {entry["kind"] for entry in newest["lineage"]} == {"commit"}
    assert f"release:{newest['version']}" in {entry["subject"] for entry in newest["lineage"]}


def test_latest_is_the_newest_that_is_not_retired(project):
    client = client_of(project, Role.ENGINEER)
    address = f"/api/v1/projects/{project.slug}/models"
    assert client.get(f"{address}/latest").json()["version"] == 2
    model_versions.retire_release(release=project.releases.get(version=2), reason="wrong guideline")
    assert client.get(f"{address}/latest").json()["version"] == 1
    assert client.get(f"{address}/2").json()["retired_reason"] == "wrong guideline"
    for absent in ("3", "one", "1²"):
        assert client.get(f"{address}/{absent}").status_code == 404
    # The words about the classes are version 0, and this project has none.
    assert client.get(f"{address}/0").status_code == 409


def test_a_file_downloads_once_and_is_then_known_by_its_digest(project):
    client = client_of(project, Role.MANAGER)
    listed = client.get(f"/api/v1/projects/{project.slug}/models/1").json()["files"]
    for file in listed:
        response = client.get(file["url"])
        assert hashlib.sha256(response.getvalue()).hexdigest() == file["sha256"]
        assert response["ETag"] == f'"{file["sha256"]}"'
        again = client.get(file["url"], headers={"If-None-Match": f'"other", "{file["sha256"]}"'})
        assert (again.status_code, again.content) == (304, b"")
    assert client.get(f"/api/v1/projects/{project.slug}/models/1/files/absent").status_code == 404


def test_a_corrupt_file_is_a_fault_and_no_download(project):
    release = project.releases.get(version=1)
    path = storage._path_of(release.folder) / "weights.json"
    path.write_text("{}")
    answer = client_of(project, Role.ENGINEER).get(f"/api/v1/projects/{project.slug}/models/1/files/weights.json")
    assert answer.status_code == 500
    assert answer["Content-Type"] == "application/problem+json"
    assert "digest" in answer.json()["detail"]


def told_outside(project, blocks, monkeypatch) -> list[str]:
    """Run a project of secret blocks with these coins; return what routes, page and card say, digests and times off."""
    monkeypatch.setattr(selection, "draw_blocks", lambda n, rate, rng: np.full(n, blocks, dtype=np.uint8))
    learning.upload(project, [[text] for text in learning.sentences(20)], ["text"])
    learning.run_to_release(project, make_user(), version=1)
    engineer = client_of(project, Role.ENGINEER)
    shown = [engineer.get(f"/api/v1/projects/{project.slug}/{what}").json() for what in ("models", "rounds")]
    (model,), (chosen,) = shown
    # Whole seconds, both of them.
    assert chosen["closes_at"] >= chosen["created_at"]
    assert {len(file.pop("sha256")) for file in model["files"]} == {64}
    model.pop("created_at")
    model.pop("released_at")
    for moment in ("created_at", "finished_at", "closes_at"):
        chosen.pop(moment)
    for line in model["lineage"]:
        line.pop("hash")
    person = make_user()
    members.add_member(project=project, user=person, role=Role.ENGINEER)
    pages = browser_of(person)
    statement = pages.get(f"/projects/{project.slug}/budget/").content.decode()
    lines = [line for line in re.findall(r"<td[^>]*>(.*?)</td>", statement, re.DOTALL) if "<time" not in line]
    assert "secret choice" in " ".join(lines)
    with storage.open_file(release=project.releases.get(), name="card.md") as file:
        card = file.read().decode()
    return [str(part).replace(project.slug, "").replace(project.name, "") for part in (model, chosen, lines, card)]


def test_what_leaves_is_the_same_whether_everything_was_asked_or_nothing(monkeypatch):
    owner = make_user()
    everything = told_outside(learning.open_secret(owner), 1, monkeypatch)
    nothing = told_outside(learning.open_secret(owner), 0, monkeypatch)
    assert everything == nothing
    assert "'questions_asked': None" in nothing[0]
    assert "'selected': None" in nothing[1]
    assert "'pool_size': 20" in nothing[1]
