import pytest
from playwright.sync_api import expect

from annotation.models import Label, Query
from annotation.questions.selectors import spans_of
from annotation.questions.services import queue
from annotation.questions.services.spans import span_set_number
from dpal.spans.text import Span
from tests.axe import problems_of
from tests.factories import make_project, make_records
from tests.keyboard import read_first

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PHONE = {"width": 390, "height": 700}
TEXT = "Ada Lovelace flew to São Paulo, 😀 then to Paris. " + "and on " * 20


@pytest.fixture
def project(db):
    project = make_project(question="Mark names.", question_kind="spans", classes=["name", "place"])
    records = make_records(project, [TEXT, "nobody here", "Ada"])
    queue.open_queries(project=project, round_number=1, record_ids=[one.pk for one in records])
    return project


def answers(project) -> list[tuple[Span, ...]]:
    given = Label.objects.filter(superseded_at=None).order_by("pk").values_list("choice", flat=True)
    return [spans_of(project, [choice])[choice] for choice in given]


def press(page, *pressed: str) -> None:
    for key in pressed:
        page.keyboard.press(key)


def word(page, text: str):
    return page.locator("#question [role=option]").filter(has_text=text).first


def span(text: str, type_: str) -> Span:
    start = TEXT.index(text)
    return Span(start, start + len(text), type_)


def test_mouse_marks_and_keys_change_remove_and_undo(enter, project):
    page = enter(project)
    read_first(page)
    expect(page.locator("#question [role=option]")).to_have_count(32)
    expect(page.locator("#work")).to_contain_text("Only the first 32 words")
    word(page, "Ada").hover()
    page.mouse.down()
    word(page, "Lovelace").hover()
    page.mouse.up()
    page.locator("[data-type=place]").click()
    expect(page.locator("#announcement")).to_have_text("Ada Lovelace: place")
    page.locator("#question").focus()
    press(page, "Home", "1")
    expect(page.locator("#announcement")).to_have_text("Ada Lovelace: name")
    # A selection that holds a part of a span and more is refused.
    press(page, "Home", "ArrowRight", "Shift+ArrowRight", "2")
    expect(page.locator("#problem")).to_contain_text("never overlap")
    press(page, "ArrowRight", "ArrowRight", "Shift+ArrowRight", "2")
    expect(page.locator("#marks li")).to_have_text(["name: Ada Lovelace ×", "place: São Paulo ×"])
    word(page, "Paris").click()
    press(page, "2", "Delete")
    expect(page.locator("#announcement")).to_have_text("Paris: not marked")
    press(page, "Enter")
    expect(page.locator("#question")).to_contain_text("nobody here")
    assert answers(project) == [(span("Ada Lovelace", "name"), span("São Paulo", "place"))]
    read_first(page)
    press(page, "u")
    expect(page.locator("#marks li")).to_have_count(2)
    read_first(page)
    page.locator("#marks button").first.click()
    page.get_by_role("button", name="Store the answer").click()
    expect(page.locator("#question")).to_contain_text("nobody here")
    read_first(page)
    press(page, "Enter")
    expect(page.locator("#question")).to_contain_text("Ada")
    assert answers(project) == [(span("São Paulo", "place"),), ()]


def test_a_finger_on_a_phone_and_no_network(enter, project):
    page = enter(project, viewport=PHONE, has_touch=True)
    read_first(page)
    assert problems_of(page) == []
    word(page, "São").tap()
    word(page, "Paulo").tap()
    page.locator("[data-type=place]").tap()
    expect(page.locator("#marks li")).to_have_text(["place: São Paulo ×"])
    assert problems_of(page) == []
    page.context.set_offline(True)
    page.get_by_role("button", name="Store the answer").tap()
    expect(page.locator("#problem")).to_contain_text("You are offline")
    page.context.set_offline(False)
    expect(page.locator("#question")).to_contain_text("nobody here", timeout=30_000)
    assert answers(project) == [(span("São Paulo", "place"),)]


def test_one_key_takes_the_spans_that_a_model_suggests(enter, project):
    number = span_set_number(project, [span("Ada Lovelace", "name"), span("Paris", "place")], TEXT)
    first = Query.objects.filter(project=project, record__text=TEXT)
    first.update(suggested=number, suggested_percent=80, suggestion_shown=True)
    page = enter(project)
    read_first(page)
    expect(page.locator("#suggestion")).to_contain_text("name: Ada Lovelace; place: Paris (80 % sure)")
    expect(page.locator("#marks li")).to_have_count(0)
    assert problems_of(page) == []
    press(page, "a")
    expect(page.locator("#marks li")).to_have_text(["name: Ada Lovelace ×", "place: Paris ×"])
    press(page, "Enter")
    expect(page.locator("#question")).to_contain_text("nobody here")
    expect(page.get_by_role("button", name="Accept the suggestion")).to_have_count(0)
    assert answers(project) == [(span("Ada Lovelace", "name"), span("Paris", "place"))]
