from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import Sum

from annotation.data.services import streams
from annotation.models import Consensus, Project, Query, Role
from annotation.people.services import members
from annotation.questions.services import labels, queue
from learner.models import Round
from learner.pools import selectors
from learner.rounds.services import loop
from tests import learning, streaming
from tests.counting import begin_over
from tests.emptying import empty_tables
from tests.factories import make_user
from tests.twins import Draws, Eyes, Sight, a_site, differing, drawing

pytestmark = pytest.mark.django_db
OUTSIDE = ("outsider", "engineer")
SEED = 5
THREE = ["fruit", "tool", "neither"]
HIDDEN = {"update_policy": "flsw_hidden", "window_length": 40, "window_denominator": 4, "updates_per_release": 1}
OTHER_TEXT = "hammer pliers wrench"
NOTHING: Mapping[int, Any] = MappingProxyType({})


@pytest.fixture(scope="module")
def eyes(django_db_setup: None, django_db_blocker: Any) -> Iterator[Eyes]:
    with django_db_blocker.unblock():
        names = ("manager", "engineer", "outsider", "annotator", "other", "third")
        yield Eyes({name: make_user(f"twin-{name}") for name in names})
        empty_tables()
        begin_over()


@pytest.fixture
def draws() -> Iterator[Draws]:
    found = Draws()
    with drawing(found):
        yield found


def opened(project: Project, eyes: Eyes) -> Project:
    members.add_member(project=project, user=eyes.people["engineer"], role=Role.ENGINEER)
    for name in ("annotator", "other", "third"):
        members.add_member(project=project, user=eyes.people[name], role=Role.ANNOTATOR)
    return project


def fill(project: Project, changed: Mapping[int, str]) -> None:
    rows = [changed.get(place, text) for place, text in enumerate(learning.sentences(60))]
    learning.upload(project, [[text] for text in rows], ["text"])
    tested = [[text, learning.CLASSES[learning.truth_of(text)]] for text in learning.sentences(30, seed=2)]
    learning.upload(project, tested, ["text", "label"], role="public_test")


@dataclass(frozen=True, slots=True)
class Site:
    """What was seen of a site, early and late, and by its rounds had they told more; and what it asked."""

    early: Sight
    late: Sight
    telling: Sight
    asked: tuple[int, ...]


def experts(
    eyes: Eyes, draws: Draws, changed: Mapping[int, str] = NOTHING, *, seed: int = SEED, **settings: Any
) -> Site:
    draws.begin(seed=seed)
    with a_site():
        opening = learning.open_secret if "selection_rate" in settings else learning.open_trusted
        project = opened(opening(eyes.people["manager"], **settings), eyes)
        fill(project, changed)
        learning.work_off(project)
        early = eyes.look(project, "engineer", at="/api/")
        learning.run_to_release(project, eyes.people["annotator"], version=2)
        loop.advance_project(project_id=project.pk)
        asked = Query.objects.filter(project=project).order_by("pk").values_list("record__row_number", flat=True)
        return Site(early, eyes.look(project, *OUTSIDE), telling(eyes, project), tuple(asked))


def settle(project: Project, people: list[User], opinions: Mapping[int, tuple[int, ...]]) -> list[str]:
    """Have people answer whatever is open: truthfully, but for the questions whose `opinions` are given.

    Returns what each of them was asked, in order.
    """
    told = []
    for place, person in enumerate(people):
        while (held := queue.claim_next(project=project, user=person)) is not None:
            told.append(f"{person} {learning.shown_text(held.query)}")
            opinion = opinions.get(held.query_id)
            choice = learning.truth_of(learning.shown_text(held.query)) if opinion is None else opinion[place]
            labels.submit_label(assignment=held, choice=choice)
    return told


def crowd(
    eyes: Eyes, draws: Draws, opinion: tuple[int, ...], *, other_lines: int = 0, days: int = 1, **settings: Any
) -> Site:
    """Show a crowd's project when its first questions are answered, one of them like that, and when it asked again.

    So many lines of the log's first text are said to be its second text; the log comes in so many uploads.
    """
    draws.begin(seed=SEED)
    with a_site():
        small = {"overlap": 3, "labels_per_release": 8, "round_size": 8, "maximum_releases": 2}
        project = opened(learning.open_crowd(eyes.people["manager"], classes=THREE, **small | settings), eyes)
        texts = learning.sentences(16)
        lines = [text for text in texts for _line in range(30)]
        lines[:other_lines] = [texts[1]] * other_lines
        rows = [[text, f"person {n}"] for n, text in enumerate(lines)]
        for day in range(days):
            learning.upload(project, rows[day::days], ["text", "contributor"])
            learning.work_off(project)
        open_ones = Query.objects.filter(project=project, state="open").order_by("pk").values_list("pk", flat=True)
        people = [eyes.people[name] for name in ("annotator", "other", "third")]
        asked = settle(project, people, {open_ones[0]: opinion})
        early = eyes.look(project, "engineer", at="/api/") | eyes.look(project, "annotator")
        learning.work_off(project)
        late = eyes.look(project, *OUTSIDE, "annotator")
        return Site(early, late, telling(eyes, project), tuple(asked))


def stream(eyes: Eyes, draws: Draws, changed: Mapping[int, Any] = NOTHING, *, seed: int = SEED) -> Site:
    draws.begin(seed=seed)
    with a_site():
        project = opened(streaming.open_stream(eyes.people["manager"], **HIDDEN), eyes)
        rows = [changed.get(place, row) for place, row in enumerate(streaming.rows(80))]
        streams.post_records(project=project, records=rows)
        streaming.work_off(project)
        early = eyes.look(project, "engineer", at="/api/")
        streaming.answer(project, eyes.people["annotator"])
        streaming.let_time_pass(project)
        streaming.work_off(project)
        asked = Query.objects.filter(project=project).order_by("pk").values_list("priority", flat=True)
        return Site(early, eyes.look(project, *OUTSIDE), {}, tuple(asked))


def telling(eyes: Eyes, project: Project) -> Sight:
    def told(chosen: Round) -> dict[str, Any]:
        agreeing = Consensus.objects.filter(project=project).aggregate(n=Sum("agreeing", default=0))["n"]
        return asked_in(chosen) | {"selected": agreeing if chosen.block is None else chosen.selected}

    asked_in = selectors.asked_in
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selectors, "asked_in", told)
        return eyes.look(project, "engineer", at="/rounds")


@pytest.mark.slow
def test_a_line_of_an_earlier_upload_shows_nowhere_where_uploads_are_counted_together(eyes: Eyes, draws: Draws) -> None:
    """It is in two runs of the gate, and what these let out is as it might have been without it."""
    together = {"days": 2, "privacy_unit": "record", "texts_per_contributor": None, "gate_window": 2}
    here = crowd(eyes, draws, (0, 0, 1), **together)
    there = crowd(eyes, draws, (0, 0, 1), other_lines=1, **together)
    assert there.asked == here.asked
    assert differing(here.early, there.early) == []
    assert differing(here.late, there.late) == []


@pytest.mark.slow
def test_one_record_of_experts_shows_nowhere(eyes: Eyes, draws: Draws) -> None:
    """Its text and so its label are others, and the model and the choice are as they might have been without it."""
    here = experts(eyes, draws)
    there = experts(eyes, draws, {here.asked[0]: OTHER_TEXT})
    assert differing(here.early, there.early) == []
    assert differing(here.late, there.late) == []


@pytest.mark.slow
def test_secret_blocks_show_neither_a_record_nor_their_coins(eyes: Eyes, draws: Draws) -> None:
    """One record is another and everybody's coins are, so that others and another number of them are asked."""
    here = experts(eyes, draws, selection_rate=0.3)
    there = experts(eyes, draws, {here.asked[0]: OTHER_TEXT}, selection_rate=0.3, seed=SEED + 2)
    assert len(there.asked) != len(here.asked)
    assert differing(here.early, there.early) == []
    assert differing(here.late, there.late) == []
    assert len(differing(here.telling, there.telling)) == 1


@pytest.mark.slow
def test_hidden_windows_show_neither_a_record_nor_who_was_asked_about(eyes: Eyes, draws: Draws) -> None:
    here = stream(eyes, draws)
    there = stream(eyes, draws, {here.asked[0]: {"amount": -0.9, "hour": 0.1, "distance": 0.3}}, seed=SEED + 4)
    assert len(there.asked) != len(here.asked)
    assert differing(here.early, there.early) == []
    assert differing(here.late, there.late) == []


def test_neither_an_answer_nor_a_line_of_a_log_shows_in_front_of_a_crowd(eyes: Eyes, draws: Draws) -> None:
    """One person answers one question otherwise: no class wins any more; or another one does, and a line is another."""
    here = crowd(eyes, draws, (0, 0, 1))
    disputed, turned = crowd(eyes, draws, (0, 2, 1)), crowd(eyes, draws, (0, 1, 1), other_lines=1)
    # Whoever answered otherwise reads that on their own page.
    for other in (disputed, turned):
        assert other.asked == here.asked
        assert differing(here.early, other.early) == []
        assert differing(here.late, other.late) == []
    assert len(differing(here.telling, disputed.telling)) == 1
