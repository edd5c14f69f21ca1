import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.template.loader import render_to_string
from django.test import Client

from annotation.choices.label_types.choose import ChooseOne
from annotation.models import Label, Membership, Project, Query, QueryState, Role
from annotation.review.agreement import Answer, compare_answers
from learner.charts.pages import history_chart
from learner.models import ModelRelease, TrainingRun
from learner.models.answers import RandomizedLabel
from learner.rounds.services import randomization
from privacy.mechanisms.randomized_response import RandomizedResponse
from tests import learning
from tests.clients import browser_of
from tests.factories import make_annotators, make_user
from tests.web.learner.test_outside import asked_in, engineer_of, handed_out, read, settle, taken_back, told

pytestmark = pytest.mark.django_db(transaction=True)
CLASSES = ["fruit", "tool", "other"]
# Clocks, what is drawn for each page, keys of rows that both worlds number on, and digests over any of them.
MOVING = re.compile(
    # The axis of a chart over clocks: what would say the same second twice is written once, so it has more or fewer.
    r"<text class=\"across(?: last)?\" x=\"[\d.]+\"\s+y=\"\d+\" dy=\"1.4em\">\d\d(:\d\d){1,2}</text>\s*"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?[^\s\"<]*"
    r"|\d\d?(:\d\d)? [ap]\.m\.|\b(noon|midnight)\b|\d\d?:\d\d(:\d\d)?"
    r"|[0-9a-f]{64}|[0-9a-f]{8}-[0-9a-f-]{27}"
    # The pace of whoever reads, and charts over clocks.
    r"|(?<=<path class=\"line\" d=)\"[^\"]*\"|\bc?x=\"[\d.]+\""
    r"|about [\d,]+ an hour"
    r"|data-person=\"\d+\"|[A-Za-z0-9]{64}|\d+(\.\d+)? (s|seconds?|ms)\b|\d+ (minutes?|seconds?)( ago)?"
)
ROUTES = ("rounds", "models", "models/2", "models/3", "ledger", "ledger/entries")
PAGES = ("releases/", "releases/2/", "releases/3/", "budget/", "budget/statement/", "dashboard/")
FILES = ("weights.json", "privacy.json", "card.md", "features.json")


def held(classes: Any, kept: Any, **_draw: Any) -> Any:
    return np.array([np.flatnonzero(row)[place % row.sum()] for place, row in enumerate(kept)])


def silent(classes: Any, kept: Any, **_draw: Any) -> Any:
    """The broken twin: the response is the answer."""
    return np.array([true if row[true] else np.flatnonzero(row)[0] for true, row in zip(classes, kept, strict=True)])


@pytest.fixture
def crowd(request):
    project = learning.open_crowd(
        make_user(),
        label_randomizer="randomized_consensus",
        answers_epsilon=3.0,
        labels_epsilon=4.0,
        estimator="channel",
        repeat_votes=False,
        response_classes=getattr(request, "param", "top_k"),
        features="static_encoder",
        overlap=3,
        classes=CLASSES,
        maximum_releases=3,
    )
    learning.fill_crowd(project, texts=28)
    make_annotators(project, 3)
    learning.work_off(project)
    settle(project)
    learning.work_off(project, version=1)
    learning.work_off(project)
    return project


def plain(body: bytes) -> str:
    return MOVING.sub("", body.decode())


def test_how_long_a_page_has_stood_is_no_part_of_what_is_compared():
    """A quick machine writes fewer marks under a chart over clocks; other charts keep theirs."""
    start = datetime(2026, 11, 27, 12, tzinfo=UTC)
    pages: list[str] = []
    apart_pages: list[str] = []
    for seconds, hours in ((2, 0), (3, -2), (9, -12), (540, 0)):  # noon, midnight, and an hour without its minutes
        first = start + timedelta(hours=hours)
        stood = [(first, 1.0), (first + timedelta(seconds=seconds), 2.0)]
        chart = history_chart({"labels": stood}, up="ε")
        pages.append(render_to_string("learner/_chart.html", {"chart": chart, "title": "spent"}))
    assert len({page.count('class="across') for page in pages}) > 1
    # Whether two accounts were last charged within the same second.
    for apart in (0, 5):
        stood = {"pool": [(start, 1.0)], "answers": [(start, 1.0), (start + timedelta(seconds=apart), 2.0)]}
        chart = history_chart(stood, up="ε")
        apart_pages.append(render_to_string("learner/_chart.html", {"chart": chart, "title": "spent"}))
    assert len({plain(page.encode()) for page in apart_pages}) == 1
    assert len({plain(page.encode()) for page in pages}) == 1


def seen_outside(project: Project) -> dict[str, Any]:
    engineer, person = engineer_of(project), Client()
    member = Membership.objects.filter(project=project, role=Role.ENGINEER).latest("pk").user
    person.force_login(member)
    found: dict[str, Any] = {route: plain(json.dumps(read(engineer, project, route)).encode()) for route in ROUTES}
    found |= {"told": told(engineer, project), "handed out": handed_out(project)}
    for page in PAGES:
        answer = person.get(f"/projects/{project.slug}/{page}")
        assert answer.status_code == 200, page
        found[f"page {page}"] = plain(answer.content).replace(member.username, "")
    for name in FILES:
        answer = person.get(f"/projects/{project.slug}/releases/3/files/{name}")
        found[name] = plain(answer.getvalue())
    annotator = browser_of(Membership.objects.filter(project=project, role=Role.ANNOTATOR).first().user)
    for page in ("label/", "label/mine/", "label/done/"):
        found[f"annotator {page}"] = plain(annotator.get(f"/projects/{project.slug}/{page}").content)
    found["weights"] = list(ModelRelease.objects.order_by("version").values_list("weights", flat=True))
    found["runs"] = list(TrainingRun.objects.order_by("version").values_list("version", "labels_used", "unagreed"))
    return found


def worlds_of(project: Project, draw: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    first = asked_in(2)
    opinions: list[dict[int, tuple[int, ...]]] = [
        {},
        {first[0]: (2, 2, 2)},
        # Nobody agrees with anybody, about one question or about all of them.
        {first[0]: (0, 1, 2)},
        dict.fromkeys(first, (2, 0, 1)),
    ]
    worlds, truths, release = [], [], RandomizedResponse.release
    for opinion in opinions:
        drawn: list[list[int]] = []

        def noted(response: Any, classes: Any, kept: Any, *, rng: Any, drawn: list[list[int]] = drawn) -> Any:
            if len(kept) >= 100:  # the canary's own draws
                return release(response, classes, kept, rng=rng)
            drawn.append(np.asarray(classes).tolist())
            return draw(classes, kept)

        with taken_back(), monkeypatch.context() as patch:
            patch.setattr(RandomizedResponse, "release", noted)
            settle(project, opinion)
            disputed = Query.objects.filter(project=project, state=QueryState.DISPUTED).count()
            assert disputed == sum(len(set(one)) == 3 for one in opinion.values())
            learning.work_off(project, version=2)
            learning.work_off(project)
            settle(project)
            learning.work_off(project, version=3)
            assert RandomizedLabel.objects.filter(project=project).count() == 24
            worlds.append(seen_outside(project))
            truths.append(drawn[0])
    # The worlds do differ inside, where the response is drawn.
    assert truths[1] != truths[0]
    assert len({tuple(truth) for truth in truths}) >= 3
    return worlds


# A model that is sure of itself keeps one class of the likeliest, and leaves an answer nothing to change.
@pytest.mark.one_in(2)
@pytest.mark.parametrize("crowd", ["top_k", "uniform"], indirect=True)
def test_nothing_outside_changes_when_answers_do_and_responses_do_not(crowd, monkeypatch):
    alike, *others = worlds_of(crowd, held, monkeypatch)
    for world in others:
        assert [name for name in alike if world[name] != alike[name]] == []


@pytest.mark.slow
@pytest.mark.parametrize("crowd", ["uniform"], indirect=True)
def test_an_answer_that_is_said_as_it_is_shows(crowd, monkeypatch):
    """The test above finds something where there is something to find."""
    alike, *others = worlds_of(crowd, silent, monkeypatch)
    assert others[0]["weights"] != alike["weights"]


# Names of savepoints, which count on, and values that stand in statements.
VALUES = re.compile(r"\bs\d+_x\d+\b|'[^']*'|\b\d+\b")


def work_of(project: Project, opinion: dict[int, tuple[int, ...]], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    release, done = RandomizedResponse.release, []

    def noted(response: Any, classes: Any, kept: Any, *, rng: Any) -> Any:
        return release(response, classes, kept, rng=rng) if len(kept) >= 100 else held(classes, kept)

    def count(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
        statement = sql if isinstance(sql, str) else str(sql)
        done.append(VALUES.sub("", statement))
        return execute(sql, params, many, context)

    with taken_back(), monkeypatch.context() as patch:
        patch.setattr(RandomizedResponse, "release", noted)
        settle(project, opinion)
        with connection.execute_wrapper(count):
            learning.work_off(project, version=2)
            engineer = engineer_of(project)
            for route in ROUTES[:2]:
                read(engineer, project, route)
    return done


def agreed_by_dawid_skene(project: Any, questions: Any, rng: Any) -> Any:
    """The planted twin: whom to believe follows from all ordinary answers, and takes longer where they differ."""
    ids = [question.pk for question in questions]
    given = Label.objects.filter(query__in=ids, superseded_at=None, choice__isnull=False)
    answers = [Answer(*row) for row in given.values_list("query_id", "annotator_id", "choice")]
    opinions = compare_answers(answers, method="dawid_skene", kind=ChooseOne()).opinions
    for question in ids:
        if len({answer.choice for answer in answers if answer.task == question}) > 1:
            Label.objects.filter(query=question).count()
    return np.array([opinions[question][0] for question in ids], dtype=np.int64)


@pytest.mark.slow
def test_how_long_work_takes_does_not_follow_from_answers(crowd, monkeypatch):
    """Clocks of a shared machine tell little; the same statements in the same order are what takes the time."""
    first = asked_in(2)
    # What a process asks once and keeps is asked by now.
    work_of(crowd, {}, monkeypatch)
    alike = work_of(crowd, {}, monkeypatch)
    assert len(alike) > 50
    for opinion in ({first[0]: (2, 2, 2)}, {first[0]: (0, 1, 2)}):
        assert work_of(crowd, opinion, monkeypatch) == alike
    monkeypatch.setattr(randomization, "_agreed", agreed_by_dawid_skene)
    assert work_of(crowd, {first[0]: (0, 1, 1)}, monkeypatch) != work_of(crowd, {}, monkeypatch)
