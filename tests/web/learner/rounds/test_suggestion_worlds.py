from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from annotation.models import Label, Membership, Project, Query, Role
from learner.models import Round, TrainingRun
from learner.pools.selectors import training_price
from learner.rounds.services import suggestions
from privacy.mechanisms.randomized_response import RandomizedResponse
from tests import learning
from tests.clients import browser_of
from tests.factories import add_members, make_annotators, make_user
from tests.programs import Program
from tests.web.learner.answers.test_randomized_worlds import held, plain, silent
from tests.web.learner.test_outside import asked_in, settle, taken_back

pytestmark = pytest.mark.django_db(transaction=True)
CLASSES = ["fruit", "tool", "other"]


class Coins:
    """Coins that fall alike in every world: what they leave blind is no matter of answers."""

    def __init__(self) -> None:
        self.thrown = 0

    def random(self) -> float:
        self.thrown += 1
        return (self.thrown % 2) * 0.9


@pytest.fixture
def crowd():
    project = learning.open_crowd(
        make_user(),
        label_randomizer="randomized_consensus",
        answers_epsilon=3.0,
        labels_epsilon=4.0,
        estimator="channel",
        repeat_votes=False,
        # A model that is sure of itself would keep one class, and leave an answer nothing to change.
        response_classes="uniform",
        # Draws nothing, so that equal models ask for the same.
        selection="clustered_uncertainty",
        features="static_encoder",
        overlap=3,
        classes=CLASSES,
        maximum_releases=3,
        suggestions="released_model",
        blind_share=0.5,
    )
    learning.fill_crowd(project, texts=28)
    make_annotators(project, 3)
    learning.work_off(project)
    settle(project)
    learning.work_off(project, version=1)
    learning.work_off(project)
    return project


def world_of(
    project: Project, opinion: dict[int, tuple[int, ...]], draw: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    release = RandomizedResponse.release

    def noted(response: Any, classes: Any, kept: Any, *, rng: Any) -> Any:
        return release(response, classes, kept, rng=rng) if len(kept) >= 100 else draw(classes, kept)

    with taken_back(), monkeypatch.context() as patch:
        patch.setattr(RandomizedResponse, "release", noted)
        patch.setattr(suggestions, "SecureRandom", Coins)
        settle(project, opinion)
        learning.work_off(project, version=2)
        learning.work_off(project)
        third = Query.objects.filter(project=project, round_number=3).order_by("priority", "pk")
        stored = list(third.values_list("pk", "suggested", "suggested_percent", "suggestion_shown"))
        annotator = browser_of(Membership.objects.filter(project=project, role=Role.ANNOTATOR).earliest("pk").user)
        page = plain(annotator.get(f"/projects/{project.slug}/label/").content)
    assert len(stored) == 8
    assert all(None not in row for row in stored)
    return {"stored": stored, "page": page}


def worlds_of(project: Project, draw: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    first = asked_in(2)
    opinions: list[dict[int, tuple[int, ...]]] = [
        {},
        {first[0]: (2, 2, 2)},
        {first[0]: (0, 1, 2)},
        dict.fromkeys(first, (2, 2, 2)),
    ]
    return [world_of(project, opinion, draw, monkeypatch) for opinion in opinions]


def test_with_equal_responses_suggestions_are_the_same_whatever_was_answered(crowd, monkeypatch):
    alike, *others = worlds_of(crowd, held, monkeypatch)
    for world in others:
        assert world == alike


@pytest.mark.slow
def test_an_answer_that_is_said_as_it_is_shows_in_suggestions(crowd, monkeypatch):
    """The test above finds something where there is something to find."""
    alike, *others = worlds_of(crowd, silent, monkeypatch)
    assert others[-1]["stored"] != alike["stored"]


@pytest.mark.slow
def test_a_suggestion_that_reads_answers_is_caught(crowd, monkeypatch):
    """The planted twin: what most people answered so far stands beside the next question."""

    def most_answered(model: Any, X: Any, rows: Any, among: Any = None) -> Any:
        given = list(Label.objects.filter(query__project=crowd, superseded_at=None).values_list("choice", flat=True))
        shares = np.bincount(given, minlength=len(CLASSES)) / len(given)
        return np.full(len(rows), shares.argmax()), np.full(len(rows), round(100 * shares.max()))

    monkeypatch.setattr(suggestions, "_applied", most_answered)
    alike, *others = worlds_of(crowd, held, monkeypatch)
    assert others[-1]["stored"] != alike["stored"]


def test_a_block_is_closed_before_its_time(manager):
    project = learning.open_secret(manager)
    ask = Program(manager, project)
    refused = ask("POST", "rounds/block/close", {})
    assert (refused.status_code, refused.json()["code"]) == (409, "There is no open block to close.")
    learning.fill_trusted(project)
    learning.work_off(project)
    before = Round.objects.get().closes_at
    engineer = make_user()
    add_members(project, engineer, role=Role.ENGINEER)
    assert Program(engineer, project)("POST", "rounds/block/close", {}).status_code == 403
    price = training_price(project)
    dear = ask("POST", "rounds/block/close", {"most_epsilon": price.epsilon * 0.9})
    assert (dear.status_code, dear.json()["parameters"]) == (422, {"epsilon": pytest.approx(price.epsilon, rel=1e-5)})
    assert Round.objects.get().closes_at == before
    closed = ask("POST", "rounds/block/close", {"most_epsilon": price.epsilon}, key="k").json()
    assert (closed["block"], closed["epsilon"], closed["delta"]) == (1, price.epsilon, price.delta)
    assert Round.objects.get().closes_at < before
    assert ask("POST", "rounds/block/close", {"most_epsilon": price.epsilon}, key="k").json() == closed


def test_a_model_is_trained_on_few_questions_at_a_word(manager):
    project = learning.open_trusted(manager, selection="random", round_size=50, labels_per_release=50)
    learning.fill_trusted(project, number=20)
    learning.work_off(project)
    ask = Program(manager, project)
    refused = ask("POST", "trainings", {})
    assert refused.status_code == 409
    assert "No training is waiting for a" in refused.json()["code"]
    learning.label_everything(project, make_user())
    learning.work_off(project)
    (act,) = (one for one in ask("GET", "next-step").json()["acts"] if one["kind"] == "train_on_few")
    assert ask("POST", "trainings", {"most_epsilon": act["epsilon"] / 2}).status_code == 422
    engineer = make_user()
    add_members(project, engineer, role=Role.ENGINEER)
    assert Program(engineer, project)("POST", "trainings", {}).status_code == 403
    assert not TrainingRun.objects.exists()
    started = ask("POST", "trainings", {"most_epsilon": act["epsilon"]})
    assert started.status_code == 202
    assert started.json() == {"version": 1, "state": "waiting", "epsilon": act["epsilon"], "delta": act["delta"]}
    assert TrainingRun.objects.get().labels_used == 20
    assert ask("POST", "trainings", {}).status_code == 409
