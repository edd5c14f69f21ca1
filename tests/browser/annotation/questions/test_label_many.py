from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from annotation.models import Label, Project
from annotation.projects.services.configuring import configure_project
from annotation.questions.class_list import codes_of
from annotation.questions.services import queue
from tests.axe import violations
from tests.factories import (
    make_annotators,
    make_project,
    make_records,
    make_user,
    open_preset,
    open_records,
    write_settings,
)
from tests.keyboard import read_first

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PHONE = {"width": 320, "height": 640}
# As banks name what customers want: many share their first letters and words.
INTENTS = """activate my card;age limit;apple or google pay;atm support;automatic top-up
balance not updated after transfer;balance not updated after cheque;beneficiary not allowed
cancel transfer;card about to expire;card acceptance
card arrival;card delivery estimate;card linking;card not working;card payment fee charged;card payment not recognised
card payment wrong exchange rate;card swallowed;cash withdrawal charge;cash withdrawal not recognised;change pin
compromised card;contactless not working;country support;declined card payment;declined cash withdrawal
declined transfer;direct debit not recognised;disposable card limits;edit personal details;exchange charge;exchange rate
exchange via app;extra charge on statement;failed transfer;fiat currency support;get disposable virtual card
get physical card;getting spare card;getting virtual card;lost or stolen card;lost or stolen phone;order physical card
passcode forgotten;pending card payment;pending cash withdrawal;pending top-up;pending transfer;pin blocked
receiving money;refund not showing up;request refund;reverted card payment;supported cards and currencies
terminate account;top-up by bank transfer charge;top-up by card charge;transaction charged twice;transfer timing"""
CLASSES = [name for line in INTENTS.splitlines() for name in line.split(";")]
# Of every word in a choice, on how many lines it stands.
SPLIT_WORDS = """() => {
  const split = [];
  for (const name of document.querySelectorAll(".choice > span")) {
    const text = name.firstChild;
    for (const word of text.data.matchAll(/\\S+/g)) {
      const range = document.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      if (range.getClientRects().length > 1 && !word[0].includes("-")) split.push(word[0]);
    }
  }
  return split;
}"""
Enter = Callable[..., Page]


@pytest.fixture
def project() -> Project:
    return make_project(name="Bank questions", question="What does this customer want?", classes=CLASSES)


def ask(project: Project, *texts: str) -> None:
    records = make_records(project, texts)
    queue.open_queries(project=project, round_number=1, record_ids=[record.pk for record in records])


def shows(page: Page, text: str) -> None:
    expect(page.locator("#question")).to_have_text(text)


def hits(page: Page) -> list[str]:
    return page.locator("#answer .hits .choice > span").all_inner_texts()


def answers() -> list[int | None]:
    return list(Label.objects.filter(superseded_at=None).order_by("pk").values_list("choice", flat=True))


def test_each_of_sixty_classes_takes_at_most_three_keys(project, enter):
    assert len(CLASSES) == 60
    open_records(project, 61)
    page = enter(project)
    page.evaluate("window.pressed = 0; addEventListener('keydown', () => { window.pressed += 1; }, true)")
    most = 0
    for number, code in enumerate(codes_of(CLASSES)):
        shows(page, f"record {number}")
        read_first(page)
        before = page.evaluate("window.pressed")
        page.keyboard.type(code)
        page.keyboard.press("Enter")
        shows(page, f"record {number + 1}")
        most = max(most, page.evaluate("window.pressed") - before)
    assert answers() == list(range(60))
    assert most <= 3


class TestOwnKeys:
    def test_a_few_classes_are_answered_by_them_and_the_rest_by_digits(self, enter):
        project = make_project(name="Few", classes=["yes", "no", "perhaps"])
        write_settings(project, class_keys=["no: N", "perhaps: 1"])
        open_records(project, 4)
        page = enter(project)
        assert page.locator("#answer .choice > kbd").all_inner_texts() == ["2", "N", "1"]
        for number, key in enumerate("n12", start=1):
            read_first(page)
            page.keyboard.press(key)
            shows(page, f"record {number}")
        assert answers() == [1, 2, 0]

    def test_with_many_shift_answers_and_the_letter_finds(self, project, enter):
        write_settings(project, class_keys=["transfer timing: t", "age limit: b"])
        open_records(project, 4)
        page = enter(project)
        for number, keys in enumerate((["Shift+T"], ["b", "Enter"], ["/", "Shift+B"]), start=1):
            read_first(page)
            for key in keys:
                page.keyboard.press(key)
            shows(page, f"record {number}")
        assert [CLASSES[choice] for choice in answers() if choice is not None] == [
            "transfer timing",
            "age limit",
            "age limit",
        ]
        page.keyboard.press("Shift+S")
        expect(page.locator("details[open] > summary")).to_contain_text("Skip")

    def test_what_is_confirmed_is_only_chosen(self, project, enter):
        write_settings(project, class_keys=["transfer timing: t"], confirm_answers=True)
        open_records(project, 2)
        page = enter(project)
        read_first(page)
        page.keyboard.press("Shift+T")
        expect(page.get_by_role("radio", name="transfer timing")).to_be_checked()
        assert answers() == []


class TestFinding:
    def test_what_fits_the_question_comes_first_and_then_what_was_used(self, project, enter):
        ask(project, "why was i charged twice for one coffee", "hello", "hello again")
        page = enter(project)
        assert hits(page)[0] == "transaction charged twice"
        assert len(hits(page)) == 10
        page.keyboard.press("1")
        shows(page, "hello")
        assert hits(page)[0] == "transaction charged twice"
        expect(page.locator("#answer .hits .choice").first).to_contain_text("recent")
        read_first(page)
        page.keyboard.type("spare")
        assert hits(page) == ["getting spare card"]
        expect(page.locator("#announcement")).to_have_text("1 found. Enter takes getting spare card.")
        page.keyboard.press("Enter")
        shows(page, "hello again")
        assert [CLASSES[choice] for choice in answers() if choice is not None] == [
            "transaction charged twice",
            "getting spare card",
        ]

    def test_arrows_nothing_found_and_escape(self, project, enter):
        open_records(project, 2)
        page = enter(project)
        page.keyboard.type("card pay")
        found = hits(page)
        assert found[:2] == ["card payment fee charged", "card payment not recognised"]
        page.keyboard.type("xyz")
        expect(page.get_by_text("No class has these letters.", exact=True).first).to_be_visible()
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")
        assert len(hits(page)) == 10
        read_first(page)
        page.keyboard.type("card pay")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        shows(page, "record 1")
        assert answers() == [CLASSES.index("card payment not recognised")]

    def test_commands_take_shift_and_undo_shows_the_earlier_answer(self, project, enter):
        open_records(project, 3)
        page = enter(project)
        page.keyboard.type("lost or stolen p")
        page.keyboard.press("Enter")
        shows(page, "record 1")
        read_first(page)
        page.keyboard.press("Shift+U")
        shows(page, "record 0")
        expect(page.locator("#answer .hits .choice").first).to_contain_text("your earlier answer")
        assert hits(page)[0] == "lost or stolen phone"
        read_first(page)
        page.keyboard.press("Shift+S")
        expect(page.get_by_role("button", name="I cannot tell")).to_be_focused()

    def test_a_confirmation_waits_for_a_second_enter(self, project, enter):
        write_settings(project, confirm_answers=True)
        open_records(project, 2)
        page = enter(project)
        page.keyboard.type("atm")
        page.keyboard.press("Enter")
        expect(page.locator("#answer .hits input:checked")).to_have_count(1)
        assert answers() == []
        read_first(page)
        page.keyboard.press("Enter")
        shows(page, "record 1")
        assert answers() == [CLASSES.index("atm support")]

    def test_without_connection_the_class_is_kept_and_sent_later(self, project, enter):
        open_records(project, 2)
        page = enter(project)
        page.context.set_offline(True)
        page.keyboard.type("atm")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("kept in this browser")
        assert "atm" not in page.evaluate("JSON.stringify(localStorage)")
        page.context.set_offline(False)
        shows(page, "record 1")
        assert answers() == [CLASSES.index("atm support")]

    def test_numbers_that_are_names_are_searched(self, enter):
        project = make_project(classes=[f"code {n}" for n in range(100, 140)])
        open_records(project, 2)
        page = enter(project)
        page.keyboard.type("code 127")
        assert hits(page) == ["code 127"]
        page.keyboard.press("Enter")
        shows(page, "record 1")
        assert answers() == [27]


# What reaches out of its button or lies on another one.
OVERLAPS = """() => {
  const shown = [...document.querySelectorAll(".choice")].filter((choice) => choice.checkVisibility());
  const boxes = shown.map((choice) => choice.getBoundingClientRect());
  const wrong = [];
  shown.forEach((choice, number) => {
    const box = boxes[number];
    const content = document.createRange();
    content.selectNodeContents(choice);
    for (const line of content.getClientRects()) {
      if (line.left < box.left - 1 || line.right > box.right + 1 || line.bottom > box.bottom + 1) {
        wrong.push(choice.textContent);
        break;
      }
    }
    for (const other of boxes.slice(number + 1)) {
      if (box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom) {
        wrong.push(choice.textContent);
      }
    }
  });
  return [shown.length, wrong];
}"""
LONG_NAMES = [name.replace(" ", "_") for name in CLASSES] + [
    f"identityverificationappeal{code}" for code in codes_of("abcdefghijklmnopq")
]
TEXT = "I sent money to my sister on Monday, and neither she nor my statement shows anything of it. " * 22


@pytest.mark.parametrize(
    ("scheme", "size"), [("light", {"width": 1280, "height": 800}), ("dark", {"width": 390, "height": 780})]
)
@pytest.mark.parametrize("n_classes", [4, 18, 77])
@pytest.mark.parametrize("confirm", [False, True])
def test_long_names_wrap_and_a_long_text_keeps_the_answers_in_reach(enter, n_classes, confirm, scheme, size):
    project = make_project(name="Bank_questions", question="What is this about?", classes=LONG_NAMES[-n_classes:])
    write_settings(project, confirm_answers=confirm)
    ask(project, TEXT, "another")
    page = enter(project, viewport=size, color_scheme=scheme)
    read_first(page)
    expect(page.locator("#answer .choice").first).to_be_in_viewport(ratio=1)
    shown = min(n_classes, 20 if n_classes <= 20 else 6 if size["width"] < 500 else 10)
    assert page.evaluate(OVERLAPS) == [shown, []]
    if n_classes > 20:
        page.locator(".all > summary").click()
        expect(page.locator(".all .choice")).to_have_count(n_classes)
        assert page.evaluate(OVERLAPS) == [shown + n_classes, []]
    assert page.evaluate("document.documentElement.scrollWidth") == size["width"]
    assert not page.locator("#answer").get_by_text("_").count()
    assert violations(page) == []


@pytest.mark.parametrize(("scheme", "size"), [("light", {"width": 1100, "height": 800}), ("dark", PHONE)])
def test_nothing_is_wrong_and_the_answers_are_in_reach(project, enter, scheme, size):
    ask(project, "I paid with my card yesterday and the payment was charged twice, why? " * 12, "another")
    page = enter(project, viewport=size, color_scheme=scheme)
    read_first(page)
    expect(page.locator("#answer .hits .choice").first).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator(".all > summary").click()
    expect(page.locator(".all .choice")).to_have_count(60)
    assert page.evaluate(SPLIT_WORDS) == []
    assert violations(page) == []
    page.locator(".all > summary").click()
    page.locator("#find").fill("card pay")
    page.locator("#classes > summary").click()
    assert violations(page) == []


def test_a_tap_in_the_whole_list_answers(project, enter):
    open_records(project, 2)
    page = enter(project, viewport=PHONE, has_touch=True)
    read_first(page)
    page.locator(".all > summary").tap()
    page.locator(".all").get_by_role("button", name="transfer timing").tap()
    shows(page, "record 1")
    assert answers() == [59]


def test_without_scripts_a_list_works(project, enter):
    open_records(project, 2)
    page = enter(project, java_script_enabled=False)
    page.get_by_label("Class", exact=True).select_option("change pin")
    page.get_by_role("button", name="Store the answer").click()
    shows(page, "record 1")
    assert answers() == [CLASSES.index("change pin")]


def test_what_belongs_to_a_class_is_shown(enter):
    project = open_preset(make_user(), "pool-experts")
    words = ["yes: {I|we} agree", 'yes: "count me in"', "no: never"]
    configure_project(project=project, changes={"class_descriptions": words}, actor=project.created_by)
    project.refresh_from_db()
    person = make_annotators(project, 1)[0]
    ask(project, "sure")
    page = enter(project, person)
    page.keyboard.press("l")
    expect(page.get_by_text("I agree")).to_be_visible()
    expect(page.locator("#classes dd.example q")).to_have_text("count me in")
    page.keyboard.press("1")
    expect(page.get_by_role("heading", name="Every question so far is answered")).to_be_visible()
