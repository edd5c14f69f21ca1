import json
from unittest.mock import ANY

import pytest
from django.core import mail
from django.test import Client

from annotation.models import Membership, Role
from annotation.models.joining import CrowdLink, Invitation
from annotation.models.letters import Letter
from annotation.models.people import IdempotentAnswer
from annotation.people.services import letters
from tests.factories import make_manager, make_project, make_user
from tests.programs import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def crowd():
    return make_project(oracle="crowd")


def test_an_invitation_lets_somebody_in_until_it_is_revoked(project):
    program, at = Caller(make_manager(project)), f"projects/{project.slug}/invitations"
    made = program.post(at, {"role": "engineer", "note": "for Ann", "days": 3}, key="one")
    assert made.status_code == 201
    told = made.json()
    link = told.pop("link")
    assert told == {
        "invitation": ANY,
        "role": "engineer",
        "note": "for Ann",
        "uses": 0,
        "maximum_uses": 1,
        "expires_at": ANY,
        "mail": "",
    }
    assert program.get(at).json() == [told]
    # Its secret is in no list and kept by no key: sent again, it is another one.
    assert link.rstrip("/").rsplit("/", 1)[1] not in json.dumps(program.get(at).json())
    assert program.post(at, {"role": "engineer"}, key="one").json()["link"] != link
    assert not IdempotentAnswer.objects.exists()
    ann, client = make_user("ann"), Client()
    client.force_login(ann)
    assert client.post(link.removeprefix("http://testserver")).status_code == 302
    assert Membership.objects.get(user=ann).role == Role.ENGINEER
    second = Invitation.objects.latest("pk")
    assert program.delete(f"{at}/{second.pk}").status_code == 204
    assert program.get(at).json() == []


def test_an_invitation_goes_by_mail_to_one_person(project):
    program, at = Caller(make_manager(project)), f"projects/{project.slug}/invitations"
    asked = {"role": "annotator", "address": "ann@example.org", "language": "de"}
    both = program.post(at, asked | {"maximum_uses": 2})
    assert both.status_code == 422
    assert "A mailed invitation is for one person." in both.json()["detail"]
    assert program.post(at, asked | {"address": "nobody"}).status_code == 422
    assert not Invitation.objects.exists()
    made = program.post(at, asked)
    assert (made.status_code, made.json()["mail"]) == (201, "waiting")
    letter = Letter.objects.get()
    assert (letter.address, letter.language) == ("ann@example.org", "de")
    assert "ann@example.org" not in made.content.decode()
    letters.send_letter(letter_id=str(letter.pk))
    assert made.json()["link"].removeprefix("http://testserver") in mail.outbox[0].body
    assert program.get(at).json()[0]["mail"] == "sent"


def test_a_crowd_link_is_told_once_and_closed(crowd):
    program, at = Caller(make_manager(crowd)), f"projects/{crowd.slug}/crowd-links"
    sent = {"platform": "prolific", "study": "study1", "answers_wanted": 2, "maximum_participants": 3}
    made = program.post(at, sent)
    assert made.status_code == 201
    told = made.json()
    address = told.pop("address")
    assert address.endswith("/?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}")
    link = CrowdLink.objects.get()
    assert told == sent | {
        "crowd_link": link.pk,
        "participants": 0,
        "completion_code": link.completion_code,
        "expires_at": ANY,
        "signed": False,
    }
    assert program.get(at).json() == [told]
    asked = address.removeprefix("http://testserver").split("?")[0]
    query = {"PROLIFIC_PID": "5f00000000000000000000aa", "STUDY_ID": "study1", "SESSION_ID": "s1"}
    assert Client().get(asked, query).status_code == 200
    assert program.delete(f"{at}/{link.pk}").status_code == 204
    assert program.get(at).json() == []
    assert program.delete(f"{at}/0").status_code == 404
