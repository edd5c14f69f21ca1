import re
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from annotation.budget.words import epsilon_words, exact_words
from annotation.projects.selectors import project_cards
from annotation.templatetags.privacy_numbers import percent
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from learner.dashboard.guidance import guidance_for
from learner.pools.selectors import question_counts
from privacy.ledger.selectors import guarantee
from tests import learning
from tests.clients import browser_of
from tests.factories import make_user
from tests.markup import tight

pytestmark = pytest.mark.django_db(transaction=True)
SCOPES = [Scope.PROJECTS_READ, Scope.LEDGER_READ, Scope.MODELS_READ, Scope.LABELS_READ]


@pytest.fixture
def owner(project):
    return project.created_by


@pytest.fixture
def project(remembered):
    return remembered("answers for a second version", between_versions)


def between_versions():
    opened = learning.open_trusted(make_user(), selection="random")
    learning.fill_trusted(opened)
    annotator = make_user()
    learning.run_to_release(opened, annotator, version=1)
    learning.work_off(opened)
    assert learning.label_everything(opened, annotator, at_most=5) == 5
    return opened


def rest(person, address: str):
    _, secret = tokens.create_token(user=person, name="test", scopes=SCOPES, lifetime=timedelta(days=1))
    return Client(headers={"Authorization": f"Bearer {secret}"}).get(f"/api/v1/{address}")


def read(owner, name: str, project) -> str:
    client = browser_of(owner)
    args = [] if name == "annotation:projects" else [project.slug]
    return tight(client.get(reverse(name, args=args)).content.decode())


def test_what_a_project_waits_for_by_rest(owner, project):
    told = rest(owner, f"projects/{project.slug}/next-step").json()
    way, counts = guidance_for(project), question_counts(project)
    assert (told["step"], told["waits_for"]) == (way.status.step, way.blocker) == ("labelling", "answers")
    assert told["sentence"] == way.sentence == "7 questions wait for answers."
    assert told["sentence_as_code"]["parameters"] == {"n": 7}
    assert (told["open"], told["done"]) == (counts.open, counts.newly_done) == (7, 5)
    assert [act["kind"] for act in told["acts"]] == ["label"]
    assert told["acts"][0]["page"] == reverse("annotation:label", args=[project.slug])


def test_acts_bring_their_price(owner):
    project = learning.open_secret(owner)
    learning.fill_trusted(project)
    learning.work_off(project)
    told = rest(owner, f"projects/{project.slug}/next-step").json()
    close = next(act for act in told["acts"] if act["kind"] == "close_block")
    assert close["epsilon"] == next(act.price.epsilon for act in guidance_for(project).acts if act.price is not None)
    assert told["goes_on_at"]


def test_what_was_spent_is_the_same_everywhere(owner, project):
    now = guarantee(project.pool_account)
    spent, limit = epsilon_words(now.epsilon_spent), epsilon_words(now.epsilon_limit)
    assert now.epsilon_spent > 0
    for name in ("learner:overview", "learner:standing", "learner:dashboard", "annotation:budget"):
        assert re.search(rf"{spent}\s*<small>of {limit} ε", read(owner, name, project)), name
    assert f"ε {spent} of {limit}" in read(owner, "annotation:projects", project)
    (account,) = rest(owner, f"projects/{project.slug}/ledger").json()
    assert (account["epsilon_spent"], account["epsilon_limit"]) == (now.epsilon_spent, now.epsilon_limit)
    # Its lines add up, so they have every digit.
    assert exact_words(now.epsilon_spent) in read(owner, "annotation:statement", project)


def test_how_far_the_labels_are_is_the_same_everywhere(owner, project):
    for name in ("learner:overview", "learner:standing", "learner:dashboard"):
        page = read(owner, name, project)
        assert re.search(r"<dt>Open questions</dt>\s*<dd>7</dd>", page), name
        assert re.search(r"<dt>Labels agreed on</dt>\s*<dd>17</dd>", page), name
    assert "5 of 12 questions done for the next model" in read(owner, "learner:card", project)
    assert re.search(r"<dd>\s*5 of 12\s*</dd>", read(owner, "learner:overview", project))


def test_open_and_agreed_questions_are_as_many_by_rest_and_where_answers_are_counted(owner, project):
    rows = rest(owner, f"projects/{project.slug}/questions").json()["questions"]
    counts = question_counts(project)
    assert sum(row["state"] == "open" for row in rows) == counts.open == 7
    assert sum(row["agreed"] is not None for row in rows) == counts.agreed == 17
    assert rest(owner, f"projects/{project.slug}/next-step").json()["open"] == counts.open
    # One answer a question: as many answers as labels agreed on, and all of them accepted.
    (grid,) = re.findall(r"<tbody>(.*?)</tbody>", read(owner, "annotation:quality", project), re.DOTALL)
    assert re.search(r'data-label="Answers">17</td><td class="n" data-label="Accepted">17</td>', grid)
    assert "17 answers so far" in read(owner, "annotation:data", project)
    for name in ("annotation:budget", "annotation:quality", "annotation:data"):
        assert not re.search(r"Open questions|Labels agreed on", read(owner, name, project)), f"compare {name}, too"


def test_how_good_the_newest_version_is_is_the_same_everywhere(owner, project):
    (card,) = project_cards(user=owner)
    (measured,) = rest(owner, f"projects/{project.slug}/models/1").json()["evaluations"]
    assert card.model.accuracy == pytest.approx(measured["accuracy"])
    share = tight(percent(card.model.accuracy))
    for name in (
        "learner:overview",
        "learner:standing",
        "learner:dashboard",
        "learner:releases",
        "annotation:projects",
    ):
        assert share in read(owner, name, project), name
