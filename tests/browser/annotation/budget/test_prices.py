"""Prices in a browser: the button with the price, and the page after a gate that let nothing out."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.urls import reverse

from annotation.data.services import datasets
from annotation.gates import services as gates
from annotation.models import Dataset, Job, PoolSource, WorkState
from annotation.projects.services import opening
from annotation.templatetags.privacy_numbers import unbroken
from dpal_site.embedded.processes import Supervisor
from tests import axe, learning
from tests.clients import come_in
from tests.factories import make_user
from tests.lakes import write_table

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ROWS = b"text,who\n" + b"".join(b"nobody says this %d,p%d\n" % (n, n) for n in range(13))
WIDTHS = {"phone": {"width": 320, "height": 640}, "desk": {"width": 1200, "height": 800}}
# Where pictures go, for people who want to look.
LOOKS = os.environ.get("DPAL_TEST_PICTURES", "")


def check(page: "Page", name: str) -> None:
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for size, viewport in WIDTHS.items():
            page.set_viewport_size(viewport)
            assert axe.problems_of(page) == [], (name, scheme, size)
            if LOOKS:
                page.screenshot(path=Path(LOOKS) / f"{name}-{size}-{scheme}.png", full_page=True)


@pytest.mark.slow
def test_a_charged_upload_and_a_gate_without_output(page: "Page", live_site: Supervisor) -> None:
    owner = make_user("ada")
    crowd = learning.open_crowd(owner)
    come_in(page.context, owner, live_site.url)
    page.goto(live_site.url + reverse("annotation:data", args=[crowd.slug]))
    check(page, "data")
    page.set_input_files("[name=file]", {"name": "pool.csv", "mimeType": "text/csv", "buffer": ROWS})
    page.get_by_role("button", name="Upload (a pool").click()
    page.get_by_text("the price is on the button").wait_for()
    assert not Dataset.objects.exists()
    check(page, "preview")
    page.get_by_label("Run the gate anyway; the charge").check()
    page.get_by_role("button", name="Upload for ε").click()
    page.get_by_text("Upload received").wait_for()
    dataset = Dataset.objects.get()
    datasets.import_dataset(job_id=dataset.job_id)
    dataset.refresh_from_db()
    Job.objects.filter(pk=dataset.gate_job_id).update(
        state=WorkState.FAILED, error="It did not end well.", finished_at=crowd.created_at
    )
    page.reload()
    check(page, "failed-gate")
    with page.expect_navigation():
        page.locator("#button-gate_again").click()
    gates.run_gate(job_id=Job.objects.filter(kind="gate").latest("created_at").pk)
    page.goto(live_site.url + reverse("annotation:data", args=[crowd.slug]))
    page.get_by_text("Through this gate a text passes once about 17 say it.").wait_for()
    check(page, "nothing-passed")
    page.get_by_label("How many records there will be").fill("100000")
    page.get_by_label("How many different texts").fill("20000")
    page.get_by_label("How often the most frequent").fill("900")
    page.get_by_role("button", name="Compare").click()
    page.get_by_text("Shares of a source with these").wait_for()
    check(page, "gate-numbers")
    page.get_by_label("How many records there will be").fill("15000")
    page.get_by_label("How many different texts").fill("14900")
    page.get_by_label("How often the most frequent").fill("2")
    page.get_by_role("button", name="Compare").click()
    page.get_by_text("a project of experts").wait_for()
    check(page, "hardly-repeat")


def test_resuming_names_the_next_price(page: "Page", live_site: Supervisor) -> None:
    owner = make_user("ada")
    experts = learning.open_trusted(owner)
    opening.pause_project(project=experts)
    come_in(page.context, owner, live_site.url)
    page.goto(live_site.url + reverse("learner:overview", args=[experts.slug]))
    page.get_by_role("button", name="Resume; the next model costs ε").wait_for()
    check(page, "paused")


def test_a_table_is_registered_by_its_price_and_shown_with_its_snapshot(
    page: "Page", request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Any
) -> None:
    monkeypatch.setenv("POOL_SOURCES", f"file://{tmp_path}/{{project}}")
    live_site = request.getfixturevalue("live_site")
    owner = make_user("ada")
    crowd = learning.open_crowd(owner)
    table = write_table(tmp_path / crowd.slug / "log")
    come_in(page.context, owner, live_site.url)
    page.goto(live_site.url + reverse("annotation:data", args=[crowd.slug]))
    page.get_by_text("Register a table where it lies").click()
    check(page, "table")
    page.get_by_label("Address of the table").fill("file:///etc")
    page.get_by_label("Text").fill("said")
    if crowd.privacy_unit == "contributor":
        page.get_by_label("Contributor").fill("who")
    page.get_by_role("button", name="Register and run the gate for").click()
    page.get_by_text("lies outside what the operator allows").wait_for()
    check(page, "table-refused")
    page.get_by_label("Address of the table").fill(table.as_uri())
    page.get_by_role("button", name="Register and run the gate for").click()
    page.get_by_text("Saved.").wait_for()
    settings.POOL_SOURCES = [tmp_path.as_uri()]
    datasets.import_dataset(job_id=Dataset.objects.get().job_id)
    page.goto(live_site.url + reverse("annotation:dataset", args=[crowd.slug, Dataset.objects.get().pk]))
    page.get_by_text(PoolSource.objects.get().snapshot).wait_for()
    check(page, "table-registered")


def test_a_delta_never_breaks_at_its_hyphen(page: "Page") -> None:
    style = (settings.BASE_DIR / "dpal_site/static/site.css").read_text()
    cell = '<table class="stack"><tr><td class="n" data-label="δ">5.0e-6</td></tr></table>'
    text = f"<p>δ {unbroken('5.0e-6')}</p>"
    page.set_viewport_size({"width": 320, "height": 640})
    page.set_content(f'<style>{style} main {{ width: 2rem; }}</style><main style="width: 2rem">{cell}{text}</main>')
    for place in ("td", ".whole"):
        rows = page.locator(place).evaluate(
            "one => { const range = document.createRange(); range.selectNodeContents(one);"
            " return range.getClientRects().length }"
        )
        assert rows == 1, place
