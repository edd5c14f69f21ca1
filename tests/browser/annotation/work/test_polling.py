import pytest
from django.urls import reverse
from playwright.sync_api import expect

from annotation.data.services import datasets
from tests import axe, learning
from tests.clients import come_in
from tests.factories import bring_file, make_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
# What the clock does every fifteen seconds.
AGAIN = """() => {
  const part = document.querySelector("[hx-select]");
  part.dataset.old = "yes";
  return htmx.ajax("GET", location.href, {source: part, target: part, swap: "outerHTML",
    select: part.getAttribute("hx-select"), headers: JSON.parse(part.getAttribute("hx-headers"))});
}"""


SIZES = [{"width": 1280, "height": 800}, {"width": 390, "height": 800}]


def log_in(page, live_server, person) -> None:
    come_in(page.context, person, live_server.url)


def problems_on_any_screen(page) -> list[str]:
    found = []
    for size in SIZES:
        page.set_viewport_size(size)
        found += axe.problems_of(page)
    return found


def test_a_new_part_leaves_what_is_open_the_focus_and_what_was_typed(page, live_server):
    owner = make_user()
    project = learning.open_trusted(owner, selection="random")
    learning.fill_trusted(project)
    log_in(page, live_server, owner)
    page.goto(live_server.url + reverse("learner:dashboard", args=[project.slug]))
    opened = page.locator("#table-spending")
    opened.locator("summary").click()
    expect(opened).to_have_attribute("open", "")
    field = "<input id=typed aria-label=typed value=half>"
    page.evaluate("field => document.querySelector('main').insertAdjacentHTML('beforeend', field)", field)
    page.evaluate("document.querySelector('#typed').value = 'half of it'")
    # Nothing new: the part stays the very same.
    page.evaluate(AGAIN)
    page.wait_for_timeout(200)
    expect(page.locator("#numbers")).to_have_attribute("data-old", "yes")
    learning.run_to_release(project, make_user(), version=1)
    page.evaluate(AGAIN)
    expect(page.locator("#numbers")).not_to_have_attribute("data-old", "yes")
    expect(opened).to_have_attribute("open", "")
    expect(opened.locator("summary")).to_be_focused()
    expect(page.locator("#typed")).to_have_value("half of it")
    assert axe.violations(page) == []


@pytest.mark.slow
def test_the_data_page_is_clean_while_an_upload_is_read_and_answers_come_in(page, live_server):
    owner, person = make_user(), make_user()
    project = learning.open_trusted(owner, selection="random")
    learning.fill_trusted(project)
    learning.work_off(project)
    dataset = bring_file(
        project, b"text\nplay it again\nstop it\n", name="more.csv", mapping={}, uploaded_by=owner, send=False
    )
    page.clock.install()
    log_in(page, live_server, owner)
    page.goto(live_server.url + reverse("annotation:data", args=[project.slug]))
    row = page.locator("#uploads tr").filter(has_text="more.csv")
    reading = row.inner_text()
    expect(page.locator("#answers")).to_contain_text("Answers: 0")
    assert problems_on_any_screen(page) == []
    datasets.import_dataset(job_id=dataset.job_id)
    page.clock.fast_forward(2_500)
    expect(row).not_to_have_text(reading)
    assert problems_on_any_screen(page) == []
    learning.label_everything(project, person, at_most=1)
    page.clock.fast_forward(15_500)
    expect(page.locator("#answers")).to_contain_text("Answers: 1")
    assert problems_on_any_screen(page) == []


@pytest.mark.slow
def test_the_projects_page_is_clean_while_its_cards_move(page, live_server):
    owner, person = make_user(), make_user()
    project = learning.open_trusted(owner, selection="random")
    learning.fill_trusted(project)
    learning.work_off(project)
    page.clock.install()
    log_in(page, live_server, owner)
    page.goto(live_server.url + reverse("annotation:projects"))
    moving = page.locator(".card .now")
    expect(moving).to_contain_text("Questions done for the next model")
    before = moving.inner_text()
    assert problems_on_any_screen(page) == []
    assert learning.label_everything(project, person, at_most=1) == 1
    page.clock.fast_forward(15_500)
    expect(moving).not_to_have_text(before)
    expect(moving).to_contain_text("1 of")
    assert problems_on_any_screen(page) == []
