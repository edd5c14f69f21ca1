import pytest
from django.urls import reverse
from playwright.sync_api import expect

from annotation.models import Label, Query, QueryState, Record, Report, Role
from annotation.questions.services import flags, labels, queue
from tests.axe import problems_of
from tests.clients import come_in
from tests.factories import add_members, make_annotators, make_project, make_records

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SIZES = {"light": {"width": 1280, "height": 860}, "dark": {"width": 320, "height": 640}}
TEXTS = [
    "why was i charged twice for the same coffee",
    "my card has not arrived, and it has been two weeks",
    "how do i change my pin",
    "the machine kept my card",
    "supercalifragilisticexpialidocious" * 3,
]


@pytest.fixture
def project():
    return make_project(name="Bank questions", classes=["fees", "delivery", "pin", "something else"], overlap=2)


@pytest.fixture
def people(project):
    """Two annotators, who answered four questions; one of them manages, too."""
    people = make_annotators(project, 2)
    add_members(project, people[0], role=Role.MANAGER)
    records = make_records(project, TEXTS)
    queue.open_queries(project=project, round_number=1, record_ids=[record.pk for record in records])
    for person, choices in ((people[0], (0, 1, 2, 3)), (people[1], (0, 1, 3))):
        for choice in choices:
            labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)
    flags.comment_on(assignment=queue.claim_next(project=project, user=people[0]), comment="what is this?")
    return people


def sign_in(page, live_server, person, scheme="light"):
    come_in(page.context, person, live_server.url)
    page.set_viewport_size(SIZES[scheme])
    page.emulate_media(color_scheme=scheme)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_sound(page, live_server, project, people, scheme):
    sign_in(page, live_server, people[0], scheme)
    page.goto(live_server.url + reverse("annotation:questions", args=[project.slug]))
    page.get_by_text("Narrow down").click()
    assert problems_of(page) == []
    page.get_by_role("link", name=str(Query.objects.earliest("priority").pk), exact=True).click()
    expect(page.get_by_role("heading", name="What happened")).to_be_visible()
    assert problems_of(page) == []
    # What happened is read by scrolling down alone.
    events = page.get_by_role("region", name="What happened")
    assert events.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    assert page.locator("td[data-label=When] time").first.is_visible()
    page.goto(live_server.url + reverse("annotation:own_answers", args=[project.slug]))
    assert problems_of(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_the_owner_wants_shown_stands_beside_the_record(page, live_server, project, people, scheme):
    address = "https://support.example.org/requests/2026/11/24/" + "4" * 90
    beside = {"id": "T-20261124-0001", "columns": [["address", address], ["shop", "Ulm"], ["note", None]]}
    Record.objects.update(metadata=beside)
    sign_in(page, live_server, people[0], scheme)
    for name, arguments in (
        ("questions", []),
        ("question", [Query.objects.earliest("priority").pk]),
        ("own_answers", []),
        ("review", []),
        ("label", []),
    ):
        page.goto(live_server.url + reverse(f"annotation:{name}", args=[project.slug, *arguments]))
        expect(page.get_by_text("T-20261124-0001").first).to_be_visible()
        if name != "questions":
            expect(page.get_by_text("From the owner of the record").first).to_be_visible()
            expect(page.get_by_text(address).first).to_be_visible()
        assert problems_of(page) == []


def test_a_view_is_found_kept_and_acted_on_by_keys_alone(page, live_server, project, people):
    sign_in(page, live_server, people[0])
    address = live_server.url + reverse("annotation:questions", args=[project.slug])
    page.goto(address)
    page.get_by_role("link", name="divided").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="divided")).to_have_attribute("aria-current", "page")
    assert page.url == f"{address}?agreement=divided"
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_contain_text("how do i change my pin")
    page.locator("tbody input").focus()
    page.keyboard.press("Space")
    page.get_by_label("Comment").focus()
    page.keyboard.type("Is this not about the PIN?")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("1 question was changed.")
    assert page.url == f"{address}?agreement=divided"
    assert Report.objects.filter(kind="returned").count() == 2

    sign_in(page, live_server, people[1])
    page.goto(live_server.url + reverse("annotation:label", args=[project.slug]))
    page.get_by_role("link", name="Read it").click()
    expect(page.get_by_text("Is this not about the PIN?")).to_be_visible()
    assert problems_of(page) == []
    page.get_by_label("Your answer").select_option("pin")
    page.get_by_role("button", name="Store the answer").click()
    expect(page.get_by_text("Nothing yet.")).to_be_visible()
    assert Label.objects.get(annotator=people[1], superseded_at=None, query__record__text=TEXTS[2]).choice == 2
    assert Query.objects.get(record__text=TEXTS[2]).state == QueryState.CLOSED


def test_people_by_keys_on_a_phone(page, live_server, project, people):
    sign_in(page, live_server, people[0])
    page.set_viewport_size({"width": 390, "height": 844})
    address = live_server.url + reverse("annotation:questions", args=[project.slug])
    page.goto(f"{address}?state=open")
    page.locator("tbody input").first.focus()
    page.keyboard.press("Space")
    page.get_by_label("Assign to").focus()
    page.keyboard.type(people[1].get_username())
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("1 question was assigned.")
    page.get_by_text("Narrow down").click()
    assert problems_of(page) == []
    assert Query.objects.get(assigned_to=people[1]).record.text == TEXTS[4]


def test_all_of_a_page_are_ticked_by_one_key(page, live_server, project, people):
    sign_in(page, live_server, people[0])
    page.goto(live_server.url + reverse("annotation:questions", args=[project.slug]) + "?state=open")
    boxes = page.locator("tbody input")
    page.get_by_role("button", name="Tick all of this page").press("Enter")
    assert [box.is_checked() for box in boxes.all()] == [True, True]
    page.get_by_role("button", name="Tick none").press("Enter")
    assert [box.is_checked() for box in boxes.all()] == [False, False]
    boxes.first.press("Space")
    page.get_by_role("button", name="Tick all of this page").press("Enter")
    page.get_by_role("button", name="Set aside").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("2 questions were changed.")


def test_without_scripts_the_table_works(browser, live_server, project, people):
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        sign_in(page, live_server, people[0])
        page.goto(live_server.url + reverse("annotation:questions", args=[project.slug]))
        page.get_by_text("Narrow down").click()
        page.get_by_label("Text").fill("coffee")
        page.get_by_role("button", name="Show", exact=True).click()
        expect(page.locator("tbody tr")).to_have_count(1)
        page.goto(live_server.url + reverse("annotation:questions", args=[project.slug]) + "?state=open")
        expect(page.locator("[data-tick]")).to_be_hidden()
        for box in page.locator("tbody input").all():
            box.check()
        page.get_by_role("button", name="Set aside").click()
        expect(page.get_by_role("status")).to_contain_text("2 questions were changed.")
