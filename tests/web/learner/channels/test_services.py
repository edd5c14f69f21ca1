from datetime import timedelta

import numpy as np
import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse

from annotation.models import Role
from annotation.people.services import members
from annotation.signals import project_event
from annotation.work.services import tokens
from learner.errors import ChannelRefused, NotReleased, ReasonMissing
from learner.models import ChannelMove
from learner.pools import selectors
from learner.releases.services import channels, versions
from tests import learning
from tests.clients import browser_of
from tests.factories import make_user
from tests.owning import as_owner

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(remembered):
    return remembered("two releases of experts", lambda: learning.released_experts(2))


@pytest.fixture
def told():
    heard = []

    def hear(project, event, subject, facts, **_sent):
        heard.append({"event": event, "project": project.slug, **facts})

    project_event.connect(hear)
    yield heard
    project_event.disconnect(hear)


def version(project, number: int):
    return project.releases.get(version=number)


def now(project, channel: str = "stable") -> int | None:
    found = selectors.find_release(project, channel)
    return found and found.version


def test_a_channel_is_moved_rolled_back_and_leaves_what_is_retired(project, manager, told):
    def move(number: int) -> None:
        channels.move_channel(release=version(project, number), channel="stable", reason=f"to {number}", actor=manager)

    assert now(project) is None
    move(1)
    with pytest.raises(ChannelRefused, match="no earlier version"):
        channels.roll_back_channel(project=project, channel="stable", reason="r", actor=manager)
    move(2)
    assert (now(project), now(project, "beta")) == (2, None)
    back = channels.roll_back_channel(project=project, channel="stable", reason="worse for some", actor=manager)
    assert (back.release.version, back.rolled_back, now(project)) == (1, True, 1)
    # What was undone is not come back to.
    with pytest.raises(ChannelRefused):
        channels.roll_back_channel(project=project, channel="stable", reason="r", actor=manager)
    move(2)
    versions.retire_release(release=version(project, 2), reason="Wrong guidelines.")
    assert now(project) == 1
    assert [one.release.version for one in selectors.channels_of(project)] == [1]
    with pytest.raises(NotReleased, match="retired already"):
        versions.retire_release(release=version(project, 2), reason="again")
    with pytest.raises(ChannelRefused, match="Version 2 is not released"):
        move(2)
    assert told == [
        {"project": project.slug, **event}
        for event in (
            {"event": "channel", "channel": "stable", "version": 1, "reason": "to 1", "rolled_back": False},
            {"event": "channel", "channel": "stable", "version": 2, "reason": "to 2", "rolled_back": False},
            {"event": "channel", "channel": "stable", "version": 1, "reason": "worse for some", "rolled_back": True},
            {"event": "channel", "channel": "stable", "version": 2, "reason": "to 2", "rolled_back": False},
            {"event": "retired", "version": 2, "reason": "Wrong guidelines."},
        )
    ]


def test_the_database_keeps_where_a_channel_was(project, manager):
    with pytest.raises(ReasonMissing):
        channels.move_channel(release=version(project, 1), channel="stable", reason=" ", actor=manager)
    move = channels.move_channel(release=version(project, 1), channel="stable", reason="r", actor=manager)
    given = {"project": project, "channel": "stable", "release": move.release, "moved_by": manager}
    with pytest.raises(IntegrityError, match="learner_channel_has_reason"), transaction.atomic():
        ChannelMove.objects.create(**given, reason="")
    with pytest.raises(IntegrityError, match="where a channel pointed stays"), transaction.atomic():
        ChannelMove.objects.filter(pk=move.pk).update(reason="other")
    with pytest.raises(IntegrityError, match="where a channel pointed stays"), transaction.atomic():
        move.delete()
    versions.retire_release(release=version(project, 2), reason="r")
    with pytest.raises(IntegrityError, match="a channel is a released version of its project"), transaction.atomic():
        ChannelMove.objects.create(**{**given, "release": version(project, 2), "reason": "r"})
    other = learning.open_trusted(manager)
    with pytest.raises(IntegrityError, match="a channel is a released version of its project"), transaction.atomic():
        ChannelMove.objects.create(**{**given, "project": other, "reason": "r"})
    with as_owner():
        assert ChannelMove.objects.count() == 1


def program(project, *scopes: str, role: str = Role.MANAGER) -> Client:
    person = make_user()
    members.add_member(project=project, user=person, role=role)
    secret = tokens.create_token(user=person, name="t", scopes=list(scopes), lifetime=timedelta(days=1))[1]
    return Client(headers={"Authorization": f"Bearer {secret}"})


def test_programs_move_compare_and_retire(project):
    base = f"/api/v1/projects/{project.slug}"
    manages, reads = program(project, "projects:write"), program(project, "models:read", role=Role.ENGINEER)

    def send(path: str, client: Client = manages, **body):
        return client.post(f"{base}/{path}", body, content_type="application/json")

    assert send("channels/stable", version=1, reason="first").json()["version"] == 1
    moved = send("channels/stable", version=2, reason="second").json()
    assert {name: moved[name] for name in ("channel", "version", "reason", "rolled_back")} == {
        "channel": "stable",
        "version": 2,
        "reason": "second",
        "rolled_back": False,
    }
    assert reads.get(f"{base}/models/stable").json()["version"] == 2
    assert b"".join(reads.get(f"{base}/models/stable/files/card.md").streaming_content).startswith(b"---")
    asked = reads.post(f"{base}/models/stable/predict", {"texts": ["a pear"]}, content_type="application/json")
    assert asked.json()["version"] == 2
    assert send("channels/stable/rollback", reason="worse").json()["version"] == 1
    assert [one["version"] for one in reads.get(f"{base}/channels").json()] == [1]
    predicted = reads.post(f"{base}/models/stable/predict", {"texts": ["a pear"]}, content_type="application/json")
    assert predicted.json()["version"] == 1
    assert reads.get(f"{base}/models/beta").status_code == 404

    told = reads.get(f"{base}/models/2/differences/1").json()
    assert (told["before"], told["after"], told["classes_added"], told["classes_removed"]) == (1, 2, [], [])
    # The second version may be the first again, where noisy counts found nothing better.
    first, second = (
        np.append(np.ravel(each.weights["coef"]), each.weights["intercept"])
        for each in project.releases.order_by("version")
    )
    assert told["weights_moved"] == pytest.approx(np.linalg.norm(second - first))
    assert {change["name"].rpartition(": ")[2] for change in told["guarantee"]} == {"ε spent"}
    spent = [change for change in told["guarantee"] if change["name"].endswith("ε spent")]
    assert spent[0]["before"] < spent[0]["after"]
    for one in told["accuracy"]:
        for value, low, high in (one["before"], one["after"]):
            assert low <= value <= high
            assert low < high
    assert told["accuracy"]
    backwards = reads.get(f"{base}/models/1/differences/2").json()
    assert backwards["accuracy"][0]["before"] == told["accuracy"][0]["after"]

    assert send("models/2/retire", reason="Wrong guidelines.").json() == {
        "version": 2,
        "state": "retired",
        "retired_reason": "Wrong guidelines.",
    }
    assert send("models/2/retire", reason="again").status_code == 409
    assert send("models/1/retire", reads, reason="r").status_code == 403
    assert (
        send(
            "channels/stable", program(project, "projects:write", role=Role.ENGINEER), version=1, reason="r"
        ).status_code
        == 403
    )


def test_a_manager_moves_and_compares_on_pages(project, manager):
    client = browser_of(manager)
    page = reverse("learner:channels", args=[project.slug])
    assert "The newest release" in client.get(page).content.decode()
    assert client.get(page).context["latest"].version == 2
    for number in (1, 2):
        client.post(page, {"channel": "stable", "version": number, "reason": f"to {number}"})
    assert now(project) == 2
    assert client.post(page, {"channel": "stable", "reason": "worse"}).status_code == 302
    assert now(project) == 1
    shown = client.get(page).content.decode()
    assert "rolled back" in shown
    assert "worse" in shown
    assert client.post(page, {"channel": "stable", "version": 9, "reason": "r"}).status_code == 404
    assert client.post(page, {"channel": "latest", "version": 1, "reason": "r"}).status_code == 422
    release = reverse("learner:release", args=[project.slug, 1])
    first = client.get(release).content.decode()
    assert "What differs" not in first
    assert '<span class="tag">stable</span>' in first
    beside = client.get(release, {"with": "2"}).content.decode()
    assert "What differs from version 2" in beside
    for odd in ("1", "9", "x", "latest", ""):
        assert "What differs" not in client.get(release, {"with": odd}).content.decode()
