import json

import pytest

from annotation.models import Query, Role
from annotation.questions.services import labels, queue
from tests.clients import program_of
from tests.factories import add_members, make_records, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def ids(project, people):
    records = make_records(project, ["a red apple", "a green pear", "a blue plum"])
    queue.open_queries(project=project, round_number=1, record_ids=[record.pk for record in records])
    labels.submit_label(assignment=queue.claim_next(project=project, user=people[0]), choice=1)
    return list(Query.objects.order_by("priority").values_list("pk", flat=True))


@pytest.fixture
def program(project):
    manager = make_user("manager")
    add_members(project, manager, role=Role.MANAGER)
    client = program_of(manager)

    def ask(method, path, body=None):
        address = f"/api/v1/projects/{project.slug}/{path}"
        sent = {"data": json.dumps(body), "content_type": "application/json"} if body is not None else {}
        return client.generic(method, address, **sent)

    return ask


def test_rows_are_narrowed_down_by_names(program, ids, people):
    answered = program("GET", f"questions?choice=music&annotator={people[0].get_username()}").json()
    assert answered["before"] is None
    (row,) = answered["questions"]
    assert (row["id"], row["state"], row["agreed"]) == (ids[0], "closed", "music")
    assert row["answers"] == [{"answer": "music", "count": 1}]
    # Who is asked about no record reads none.
    assert row["text"] is None
    assert [one["id"] for one in program("GET", "questions?state=open").json()["questions"]] == ids[:0:-1]
    assert program("GET", "questions?choice=sports").status_code == 422
    assert program("GET", "questions?annotator=nobody").status_code == 422


def test_one_question_comes_with_all_that_happened_to_it(program, ids, people):
    program("POST", "questions/changes", {"action": "send_back", "questions": [ids[0]], "comment": "really?"})
    found = program("GET", f"questions/{ids[0]}").json()
    happened, name = found.pop("events"), people[0].get_username()
    (row,) = program("GET", "questions?state=closed").json()["questions"]
    assert found == row
    assert [(one["what"], one["who"], one["value"]) for one in happened[:2]] == [
        ("answered", name, "music"),
        ("agreed", None, "music"),
    ]
    assert {(one["what"], one["who"], one["value"]) for one in happened[2:]} == {
        ("action", "manager", "question:send_back"),
        ("returned", name, None),
    }
    assert [one["when"] for one in happened] == sorted(one["when"] for one in happened)
    for nowhere in ("0", "x", "changes", str(ids[2] + 1)):
        assert program("GET", f"questions/{nowhere}").status_code in (404, 405)


def test_changes_come_out_in_the_table(program, ids, people):
    name = people[1].get_username()
    change = {"action": "assign", "questions": ids, "person": name}
    assert program("POST", "questions/changes", change).json() == {"changed": ids[1:]}
    assert program("POST", "questions/changes", change | {"questions": [ids[2], 10**30]}).json() == {"changed": []}
    row, _other = program("GET", f"questions?assigned={name}").json()["questions"]
    assert (row["id"], row["assigned_to"]) == (ids[2], name)
    program("POST", "questions/changes", {"action": "unassign", "questions": [ids[2]]})
    assert [one["id"] for one in program("GET", f"questions?assigned={name}").json()["questions"]] == [ids[1]]
    refused = program("POST", "questions/changes", change | {"person": "manager"})
    assert refused.status_code == 422
    assert "annotator" in refused.json()["detail"]
