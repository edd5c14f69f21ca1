import pytest
from django.urls import reverse
from playwright.sync_api import expect

from annotation.models import Report, ReportKind, Role
from annotation.questions.services import flags, labels, queue
from tests.axe import problems_of
from tests.clients import come_in
from tests.factories import add_members, make_annotators, make_project, make_records, make_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
DESK, PHONE, SMALL = {"width": 1280, "height": 860}, {"width": 390, "height": 844}, {"width": 320, "height": 640}
TEXTS = ["why was i charged twice for the same coffee", "my card has not arrived", "the machine kept my card"]
LONG = "https://example.org/" + "supercalifragilistic" * 5


@pytest.fixture
def project():
    return make_project(name="Bank questions", classes=["fees", "delivery", "pin"], overlap=2)


@pytest.fixture
def manager(project):
    person = make_user("meike")
    add_members(project, person, role=Role.MANAGER)
    return person


@pytest.fixture
def people(project):
    """Two annotators who answered the first question; one reported the second."""
    people = make_annotators(project, 2)
    records = make_records(project, TEXTS)
    queue.open_queries(project=project, round_number=1, record_ids=[record.pk for record in records])
    for person in people:
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
    held = queue.claim_next(project=project, user=people[0])
    flags.flag_question(assignment=held, kind=ReportKind.BROKEN, comment="half of it is missing")
    return people


def sign_in(page, live_server, person, size=DESK, scheme="light"):
    come_in(page.context, person, live_server.url)
    page.set_viewport_size(size)
    page.emulate_media(color_scheme=scheme)


def address(live_server, name, *arguments):
    return live_server.url + reverse(f"annotation:{name}", args=arguments)


def test_they_talk_by_keys_alone(page, live_server, project, manager, people):
    sign_in(page, live_server, people[1])
    page.goto(address(live_server, "own_answers", project.slug))
    page.get_by_text("Write to the managers").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("Is it a fee when the shop did it?")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Sent.")
    expect(page.get_by_role("list", name="What was said about it")).to_contain_text("when the shop did it?")

    sign_in(page, live_server, manager)
    page.goto(address(live_server, "questions", project.slug))
    page.get_by_role("link", name="unread comment").focus()
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.locator("tbody th a").focus()
    page.keyboard.press("Enter")
    report = page.get_by_role("region", name=f"{people[1].get_username()}: comment")
    expect(report).to_be_visible()
    assert problems_of(page) == []
    report.get_by_label("Reply to").focus()
    page.keyboard.type("Yes: a fee is what the bank books.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Sent.")
    expect(report).to_contain_text("not read yet")

    sign_in(page, live_server, people[1])
    page.goto(address(live_server, "label", project.slug))
    expect(page.get_by_text("1 comment of a manager is unread.")).to_be_visible()
    assert problems_of(page) == []
    page.get_by_role("link", name="Read it").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("a fee is what the bank books")).to_be_visible()
    assert problems_of(page) == []
    page.get_by_role("button", name="I have read it").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing yet.")).to_be_visible()
    said = Report.objects.get(kind="comment")
    assert (said.resolved_by, said.read_at is None) == (manager, False)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("size", "scheme"), [(DESK, "light"), (PHONE, "light"), (SMALL, "dark")])
def test_both_pages_are_sound(page, live_server, project, manager, people, size, scheme):
    first, flagged = people[0].assignments.order_by("created_at")
    flags.comment_on(assignment=first, comment=f"See {LONG}\nand say what it is")
    for report in Report.objects.filter(annotator=people[0]):
        flags.reply(project=project, report_id=report.pk, text=f"Thank you: {LONG}", author=manager)
    sign_in(page, live_server, manager, size, scheme)
    for turn in (first, flagged):
        page.goto(address(live_server, "question", project.slug, turn.query_id))
        expect(page.get_by_role("heading", name="Comments and reports")).to_be_visible()
        assert problems_of(page) == []
    sign_in(page, live_server, people[0], size, scheme)
    page.goto(address(live_server, "label", project.slug))
    expect(page.get_by_text("2 comments of managers are unread.")).to_be_visible()
    assert problems_of(page) == []
    page.get_by_role("link", name="Read it").click()
    expect(page.get_by_role("heading", name="About other questions")).to_be_visible()
    expect(page.get_by_text("half of it is missing")).to_be_visible()
    assert problems_of(page) == []


def test_on_a_phone_without_scripts(browser, live_server, project, manager, people):
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        sign_in(page, live_server, manager, PHONE)
        query_id = Report.objects.get().query_id
        page.goto(address(live_server, "question", project.slug, query_id))
        page.get_by_label(f"Reply to {people[0].get_username()}").fill("Look at the second sentence.")
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_text("Sent.")).to_be_visible()
        sign_in(page, live_server, people[0], PHONE)
        page.goto(address(live_server, "own_answers", project.slug) + "?only=unread")
        expect(page.get_by_text("Look at the second sentence.")).to_be_visible()
        page.get_by_label("About this question").fill("I did, and it is one.")
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_text("Sent.")).to_be_visible()
        expect(page.get_by_text("Nothing yet.")).to_be_visible()
