import time
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Error, expect

from annotation.models import Job, Project, Query
from dpal_site.embedded.processes import Supervisor
from learner.models import Round
from tests import axe

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
TWO_MINUTES = 120.0
# Of 200 records a secret block of a tenth is as good as never empty; of 30 it is once in 24 times.
POOL = b"text\n" + b"\n".join(f"you won prize {n}".encode() for n in range(200)) + b"\n"
WAIT = 60_000


class Newcomer:
    """Somebody who follows what the pages offer; every press of a button or a link is a step."""

    def __init__(self, page: "Page") -> None:
        self.page = page
        self.steps: list[str] = []

    def press(self, name: str) -> None:
        target = self.page.get_by_role("button", name=name).or_(self.page.get_by_role("link", name=name)).first
        target.click(timeout=WAIT)
        self.steps.append(name)

    def fill(self, **fields: str) -> None:
        for name, value in fields.items():
            self.page.fill(f"[name={name}]", value)


def first_question(page: "Page") -> None:
    try:
        page.get_by_text("you won prize").first.wait_for(timeout=WAIT)
    except Error:
        work = [*Job.objects.values("kind", "state", "attempt"), *Round.objects.values("state", "attempt", "error")]
        pytest.fail(f"{page.locator('main').inner_text()!r} after {work}, {Query.objects.count()} questions")


def test_a_newcomer_reaches_the_first_question_within_two_minutes(
    page: "Page", live_site: Supervisor, celery_worker_process: Supervisor
) -> None:
    page.set_default_timeout(WAIT)
    someone = Newcomer(page)
    began = time.monotonic()
    page.goto(live_site.url)
    someone.press("Create the first account")
    page.locator("[name=password1]").wait_for()
    assert axe.violations(page) == []
    someone.fill(username="ada", password1="a long enough password", password2="a long enough password")
    someone.press("Create the first account")
    someone.press("New project")
    page.set_input_files("[name=pool]", {"name": "messages.csv", "mimeType": "text/csv", "buffer": POOL})
    someone.press("Preview")
    someone.fill(question="Is this spam?", classes="spam\nham")
    someone.press("Open project")
    someone.press("Answer questions myself")
    page.wait_for_url("**/people/")
    someone.press("Open the label page")
    first_question(page)
    taken = time.monotonic() - began
    expect(page.get_by_text("Is this spam?").first).to_be_visible()
    assert len(someone.steps) == 7, someone.steps
    assert taken < TWO_MINUTES
    assert User.objects.get().is_superuser
    assert Project.objects.get().name == "messages"
