from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from playwright.sync_api import expect

from annotation.budget import services
from annotation.data.services import datasets, drafts
from annotation.models import Dataset, Project, Role
from annotation.people.services import limits, members
from annotation.projects.services import opening
from annotation.projects.services.drafts import start_draft
from dpal_site.embedded.processes import Supervisor
from privacy.ledger.selectors import guarantee
from tests import axe
from tests.clients import browser_of
from tests.factories import make_opener, open_messages, open_population, receive_upload

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LETTERS = b"letter\n" + b"".join(b"please answer me soon, number %d\n" % n for n in range(50))
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SIZES = {"desk": {"width": 1280, "height": 800}, "phone": {"width": 320, "height": 640}}


@pytest.fixture
def manager() -> User:
    return make_opener("manager", password="a long enough password")


@pytest.fixture
def project(manager: User) -> Project:
    opened = open_messages(manager)
    members.add_member(project=opened, user=User.objects.create_user("ann"), role=Role.ANNOTATOR)
    return opened


@pytest.fixture
def crowd(manager: User) -> Project:
    opened = opening.create_project(
        name="Voice queries",
        preset="voice-crowd",
        owner=manager,
        data_kind="text",
        classes=["music", "other"],
        question="What is wanted?",
    )
    dataset = receive_upload(
        project=opened,
        file=SimpleUploadedFile("voice.csv", b"text,who\nplay jazz,a\nplay jazz,b\n"),
        name="voice.csv",
        mapping={"contributor": "who"},
        uploaded_by=manager,
        send=False,
    )
    datasets.import_dataset(job_id=dataset.job_id)
    return opened


@pytest.fixture
def log_in(page: "Page", live_site: Supervisor) -> Callable[[User], None]:
    def enter(user: User) -> None:
        client = browser_of(user)
        cookie = client.cookies[settings.SESSION_COOKIE_NAME]
        page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": live_site.url}])

    return enter


def sideways(page: "Page") -> int:
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("size", "scheme"), [("desk", "light"), ("phone", "dark")])
def test_pages_are_clean(
    page: "Page", live_site: Supervisor, project: Project, crowd: Project, manager: User, log_in, size: str, scheme: str
) -> None:
    dataset = Dataset.objects.get(project=project)
    draft = drafts.keep_draft(
        project=project,
        file=SimpleUploadedFile(
            "more.csv", b"Message,label,note\nyou won,spam,x\n,opera,y\nhello there,ham,z\nalone\n"
        ),
        name="more.csv",
        role="public_test",
        bad_rows="keep_good",
        owner=manager,
    )
    typed = {"name": "Calls", "question": "Which?", "classes": "a\nb"}
    begun = [start_draft(owner=manager, preset=preset, typed=typed).pk for preset in ("voice-crowd", "pool-experts")]
    paths = [
        reverse("annotation:projects"),
        reverse("annotation:new_project"),
        *(reverse("annotation:opening", args=[each]) for each in begun),
        *(reverse("learner:draft_plan", args=[each]) for each in begun),
        reverse("learner:overview", args=[project.slug]),
        reverse("learner:dashboard", args=[project.slug]),
        reverse("annotation:people", args=[project.slug]),
        reverse("annotation:invitations", args=[project.slug]),
        reverse("annotation:mails"),
        reverse("annotation:settings", args=[project.slug]),
        reverse("annotation:log", args=[project.slug]),
        reverse("annotation:retention", args=[project.slug]),
        reverse("annotation:configuration", args=[project.slug]),
        reverse("annotation:classes", args=[project.slug]),
        reverse("annotation:rename_class", args=[project.slug]),
        reverse("annotation:merge_class", args=[project.slug]),
        reverse("annotation:data", args=[project.slug]),
        reverse("annotation:preview", args=[project.slug, draft.pk]),
        reverse("annotation:dataset", args=[project.slug, dataset.pk]),
        reverse("annotation:budget", args=[project.slug]),
        reverse("learner:plan", args=[project.slug]),
        reverse("annotation:limit_requests", args=[project.slug]),
        reverse("learner:plan", args=[crowd.slug]),
        reverse("annotation:statement", args=[project.slug]) + "?check",
        reverse("annotation:change_limit", args=[project.slug, project.pool_account_id]),
        reverse("learner:releases", args=[project.slug]),
        reverse("webhooks:webhooks", args=[project.slug]),
        reverse("learner:forget", args=[project.slug]),
        reverse("learner:closing", args=[project.slug]),
        reverse("annotation:label_budget", args=[project.slug]),
        reverse("annotation:labelling", args=[project.slug]),
        reverse("annotation:guidelines", args=[project.slug]),
        reverse("annotation:reported", args=[project.slug]),
        reverse("annotation:tokens"),
        reverse("annotation:data", args=[crowd.slug]),
        reverse("annotation:gate", args=[crowd.slug]),
        reverse("annotation:gate", args=[crowd.slug]) + f"?source={crowd.datasets.get().pk}",
        reverse("annotation:gate", args=[crowd.slug]) + "?source=synthetic&epsilon=0.7",
    ]
    common = open_population(epsilon_limit=1000.0, owner=manager, second=User.objects.create_user("second"))
    services.add_project(population=common, project=project, records_per_person=9, actor=manager)
    limits.change_limit(account=common, epsilon_limit=2000.0, delta_limit=1e-3, reason="r", actor=manager)
    paths += [reverse("annotation:populations"), reverse("annotation:population", args=[common.slug])]
    log_in(manager)
    page.set_viewport_size(SIZES[size])
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    found = {}
    root = User.objects.create_user("staff", is_staff=True, is_superuser=True)
    group = Group.objects.create(name="Night shift")
    group.user_set.add(manager)
    members.give_role(group=group, project=project, role=Role.ENGINEER)
    of_administrators = [reverse("operations:work"), reverse("annotation:new_population")]
    refused = {"/nowhere/": 404, reverse("annotation:compare_answers", args=[project.slug]): 405}
    for path in [*paths, *refused, *of_administrators]:
        if path == of_administrators[0]:
            log_in(root)
        response = page.goto(live_site.url + path)
        assert response is not None
        assert response.status == refused.get(path, 200), path
        violations = axe.violations(page)
        wide = sideways(page)
        problems = [f"{item['id']}: {item['nodes'][0]['html'][:150]}" for item in violations]
        if problems or wide:
            found[path] = (problems, wide)
    assert not found


def test_a_form_with_errors_is_clean_and_names_them(page: "Page", live_site: Supervisor, manager: User, log_in) -> None:
    log_in(manager)
    page.goto(live_site.url + reverse("annotation:new_project"))
    page.get_by_role("button", name="Choose Pool, expert labels").click()
    page.fill("[name=name]", "Invoices")
    page.fill("[name=question]", "Is this fraud?")
    page.fill("[name=classes]", "only one")
    page.get_by_role("button", name="Open project").click()
    assert page.locator("[role=alert]").inner_text().count("2 to 1,000") == 1
    assert axe.violations(page) == []


def test_a_project_opens_without_javascript(
    browser: "Browser", live_site: Supervisor, manager: User, project: Project
) -> None:
    """A combination without a proof is refused with its rule, and what was typed stays."""
    context = browser.new_context(java_script_enabled=False)
    client = browser_of(manager)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": live_site.url}])
    page = context.new_page()
    page.goto(live_site.url + reverse("annotation:new_project"))
    page.set_input_files("[name=pool]", {"name": "letters.csv", "mimeType": "text/csv", "buffer": LETTERS})
    page.get_by_role("button", name="Preview").click()
    page.get_by_label("Use of column letter").select_option("text")
    page.fill("[name=question]", "Is this urgent?")
    page.get_by_role("button", name="Open project").click()
    assert page.get_by_role("alert").inner_text().count("Classes") == 1
    assert page.input_value("[name=question]") == "Is this urgent?"
    page.fill("[name=classes]", "urgent\nnot")
    page.check("[name=level][value=loose]")
    page.get_by_role("button", name="Open project").click()
    page.wait_for_url("**/projects/letters/overview/")
    assert guarantee(Project.objects.get(slug="letters").pool_account).epsilon_limit == 4
    context.close()


def test_from_an_empty_site_to_an_upload_by_keyboard(page: "Page", live_site: Supervisor, manager: User) -> None:
    page.goto(live_site.url)
    # Keys pressed before the page has set the focus go nowhere.
    page.wait_for_selector("#id_login:focus")
    page.keyboard.type("manager")
    page.keyboard.press("Tab")
    page.keyboard.type("a long enough password")
    page.keyboard.press("Enter")
    page.wait_for_url(live_site.url + "/")
    page.locator("text=New project").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/projects/new/")
    page.get_by_role("button", name="Choose Pool, expert labels").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="How much privacy?").wait_for()
    page.locator("[name=name]").focus()
    page.keyboard.type("Messages")
    page.keyboard.press("Tab")
    page.keyboard.type("Is this spam?")
    page.keyboard.press("Tab")
    page.locator("[name=classes]").focus()
    page.keyboard.type("spam\nham")
    page.get_by_role("button", name="Open project").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/projects/messages/overview/")
    page.goto(live_site.url + "/projects/messages/data/")
    page.set_input_files("[name=file]", {"name": "pool.csv", "mimeType": "text/csv", "buffer": b"text\nhello\n"})
    page.get_by_role("button", name="Upload").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("text=pool.csv")
    assert Dataset.objects.get().name == "pool.csv"
    page.set_input_files("[name=file]", {"name": "more.csv", "mimeType": "text/csv", "buffer": b"words,body\na,b\n"})
    page.get_by_role("button", name="Preview").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/data/new/*/")
    page.get_by_label("Text").focus()
    page.keyboard.press("b")
    page.get_by_role("button", name="Update").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("td:text-is('b')")
    page.get_by_role("button", name="Upload", exact=True).focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/projects/messages/data/")
    page.wait_for_selector("text=more.csv")
    assert Dataset.objects.latest("pk").mapping["text"] == "body"


def test_on_a_phone_the_tab_one_is_on_is_in_sight(
    page: "Page", live_site: Supervisor, project: Project, manager, log_in
):
    log_in(manager)
    page.set_viewport_size(SIZES["phone"])
    page.goto(live_site.url + reverse("annotation:settings", args=[project.slug]))
    expect(page.locator(".tabs [aria-current]")).to_be_in_viewport(ratio=1)


def test_a_printed_statement_is_its_lines(
    page: "Page", live_site: Supervisor, project: Project, manager, log_in
) -> None:
    log_in(manager)
    page.goto(live_site.url + reverse("annotation:statement", args=[project.slug]))
    page.emulate_media(media="print")
    expect(page.get_by_text(project.name)).to_be_visible()
    expect(page.get_by_role("cell", name="Reason: agreed with the board")).to_be_visible()
    for gone in (".tabs", ".menu", "text=Find lines", "text=Check everything"):
        expect(page.locator(gone)).to_be_hidden()
