import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from annotation.data.services import datasets
from annotation.models import Dataset, Job, Project, Record, WorkState
from annotation.models.retention import Deletion, Forgetting
from annotation.work.services import jobs
from learner.models import ModelRelease
from learner.rounds.services import closing as deletion
from learner.rounds.services import forgetting, loop
from privacy.ledger.models import SETTLEMENTS
from privacy.ledger.selectors import guarantee
from tests import learning
from tests.clients import browser_of
from tests.factories import make_user

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SVG = "{http://www.w3.org/2000/svg}"
DRAWN = "picture => picture.complete && picture.naturalWidth > 100"
PLOTS = ("spending", "purposes", "releases", "labels")
POOL = b"message,who\none apple,Anna Nym\ntwo pears,Anna Nym\n,ben\na saw,ben\nthree drills,cleo\n"
GONE = "one apple"


@pytest.fixture
def manager() -> User:
    return make_user("ada")


@pytest.fixture
def go(page: "Page", live_server, manager: User) -> Callable[..., None]:
    client = browser_of(manager)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": live_server.url}])

    def open_page(name: str, *args: object) -> None:
        response = page.goto(live_server.url + reverse(name, args=args))
        assert response is not None
        assert response.status == 200

    return open_page


def downloaded(page: "Page", name: str) -> Path:
    with page.expect_download() as found:
        page.get_by_role("link", name=name, exact=True).click()
    return found.value.path()


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode(), newline="")))


def said(page: "Page", words: str) -> None:
    page.get_by_text(words).first.wait_for()


def test_data_in_and_labels_out(page: "Page", go: Callable[..., None], manager: User) -> None:
    project = learning.open_trusted(manager, round_size=4, labels_per_release=50)
    go("annotation:data", project.slug)
    page.set_input_files("[name=file]", {"name": "pool.csv", "mimeType": "text/csv", "buffer": POOL})
    page.get_by_role("button", name="Preview").click()
    # Nothing in the file is called text, so nothing can be shown before somebody says what is.
    said(page, "Columns")
    page.get_by_label("Text", exact=True).select_option("message")
    page.get_by_label("Contributor").select_option("who")
    page.get_by_role("button", name="Update").click()
    said(page, "1 of these 5 rows is bad.")
    expect(page.locator("td.bad")).to_have_count(2)
    page.get_by_role("button", name="Upload", exact=True).click()
    said(page, "Upload received")
    dataset = Dataset.objects.get()
    datasets.import_dataset(job_id=dataset.job_id)
    # The list tells by itself that the rows were read.
    page.locator("#uploads tr", has_text="pool.csv").get_by_text("done").wait_for()
    page.get_by_role("link", name="pool.csv").click()
    (bad,) = rows_of(downloaded(page, "Download these rows"))
    assert bad["line"] == "4"
    assert bad["reason"] in page.get_by_role("region", name="Bad rows").inner_text()

    learning.work_off(project)
    assert learning.label_everything(project, make_user("=grace")) == 4
    go("annotation:data", project.slug)
    files = {name: downloaded(page, name) for name in ("CSV", "JSONL", "Parquet", "Label Studio")}
    lines = rows_of(files["CSV"])
    assert {line["annotator"] for line in lines} == {"'=grace"}
    answers = {line["text"]: line["answer"] for line in lines}
    assert answers == {text: learning.CLASSES[learning.truth_of(text)] for text in answers}
    objects = [json.loads(line) for line in files["JSONL"].read_text().splitlines()]
    assert {one["text"]: one["answer"] for one in objects} == answers
    table = pq.read_table(files["Parquet"]).to_pylist()
    assert {one["text"]: one["answer"] for one in table} == answers
    tasks = json.loads(files["Label Studio"].read_text())
    assert {task["data"]["text"] for task in tasks} == set(answers)

    # What went out for Label Studio comes in again, here as a public test set of another project: these rows are the
    # first one's pool, whose models would be measured on what they learned from.
    other = learning.open_trusted(manager, round_size=4, labels_per_release=50)
    go("annotation:data", other.slug)
    page.set_input_files(
        "[name=file]",
        {"name": "tasks.json", "mimeType": "application/json", "buffer": files["Label Studio"].read_bytes()},
    )
    page.get_by_label("What it is").select_option("public_test")
    page.get_by_role("button", name="Preview").click()
    said(page, "All of these 4 rows are good.")
    page.get_by_role("button", name="Upload", exact=True).click()
    said(page, "Upload received")
    public = Dataset.objects.get(role="public_test")
    datasets.import_dataset(job_id=public.job_id)
    known = Record.objects.filter(dataset=public).values_list("text", "label")
    assert {text: learning.CLASSES[label] for text, label in known} == answers

    go("annotation:data", project.slug)
    page.get_by_role("link", name="Forget a contributor").click()
    page.get_by_label("Contributor").fill("Anna Nym")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("main")).to_contain_text("2 records are emptied")
    expect(page.locator("main")).to_contain_text("2 answers are erased")
    page.get_by_label("I have read this").check()
    page.get_by_role("button", name="Forget a contributor").click()
    said(page, "The contributor is being erased.")
    forgetting.forget_contributor(job_id=Forgetting.objects.get().job_id)
    page.get_by_role("region", name="Asked for before").get_by_text("done").wait_for()
    assert not Record.objects.filter(dataset=dataset, text=GONE).exists()
    go("annotation:data", project.slug)
    assert GONE not in {line["text"] for line in rows_of(downloaded(page, "CSV"))}


def test_periods_log_and_end_of_a_project(page: "Page", go: Callable[..., None], manager: User) -> None:
    project = learning.open_trusted(manager)
    learning.fill_trusted(project, number=4)
    go("annotation:settings", project.slug)
    page.get_by_role("link", name="How long things are kept").click()
    page.get_by_label("Records").fill("30")
    page.get_by_role("button", name="Save").click()
    said(page, "Saved.")
    row = page.get_by_role("row", name="Records").inner_text()
    assert "30 days" in row
    assert "–" not in row

    go("annotation:log", project.slug)
    page.locator("[name=route]").select_option("annotation:retention")
    page.get_by_role("button", name="Show", exact=True).click()
    page.wait_for_url("**route=annotation*")
    line = page.locator("tbody tr")
    expect(line).to_have_count(1)
    assert "ada\tHow long things are kept: changed" in line.inner_text()
    (entry,) = rows_of(downloaded(page, "These lines as CSV"))
    assert (entry["who"], entry["what"]) == ("ada", "How long things are kept: changed")

    go("annotation:settings", project.slug)
    page.get_by_role("link", name="Archive or delete").click()
    page.get_by_role("button", name="Archive the project").click()
    said(page, "The project is archived.")
    page.get_by_role("button", name="Unarchive").click()
    said(page, "The project is restored and paused")
    page.get_by_label("delete their files").check()
    page.get_by_label("Short name of the project").fill("another")
    page.get_by_role("button", name="Delete the project").click()
    said(page, "This is not the project's short name.")
    page.get_by_label("Short name of the project").fill(project.slug)
    page.get_by_role("button", name="Delete the project").click()
    page.get_by_role("heading", name="This project is deleted").wait_for()
    deletion.delete_project(job_id=Deletion.objects.get().job_id)
    page.locator("main .tag", has_text="done").wait_for()
    page.get_by_role("link", name="of the ledger").click()
    said(page, "Limit: ε")
    assert not Record.objects.filter(dataset__project=project).exists()


def test_what_was_spent_and_what_is_in_hand(page: "Page", go: Callable[..., None], manager: User) -> None:
    project = learning.open_trusted(manager)
    learning.fill_trusted(project)
    learning.run_to_release(project, make_user("grace"), version=1)
    loop.advance_project(project_id=project.pk)
    running = Job.objects.create(
        project=project,
        kind=jobs.COMPARE,
        state=WorkState.RUNNING,
        attempt=1,
        progress_done=25,
        progress_total=100,
        started_at=timezone.now() - timezone.timedelta(minutes=5),
    )
    go("learner:dashboard", project.slug)
    for name in PLOTS:
        picture = page.locator(f"a[href$='/{name}.svg']")
        drawn = picture.locator("xpath=preceding::*[self::figure or self::ul][1]")
        assert drawn.bounding_box()["width"] > 100
        svg = ElementTree.fromstring(page.request.get(str(picture.evaluate("link => link.href"))).body())
        assert svg.findtext(f"{SVG}title")
        assert svg.findtext(f"{SVG}desc")
        link = page.locator(f"a[href$='/dashboard/{name}.csv']")
        table = link.locator("xpath=preceding::details[1]")
        if table.get_attribute("open") is None:
            table.locator("summary").click()
        shown = table.locator("tbody tr").count()
        with page.expect_download() as found:
            link.click()
        assert len(rows_of(found.value.path())) == shown > 0, name
    for name in ("annotators", "work"):
        with page.expect_download() as found:
            page.locator(f"a[href$='/dashboard/{name}.csv']").click()
        assert rows_of(found.value.path()), name

    row = page.locator("#work tr", has_text="Comparing answers")
    assert row.locator("progress").get_attribute("value") == "25"
    assert re.search(r"about \d\d minutes", row.inner_text())
    waiting = page.locator("#work tr", has_text="Choosing questions: 2")
    waiting.get_by_role("button", name="Cancel").click()
    waiting.get_by_text("Cancelled by ada.").wait_for()
    waiting.get_by_role("button", name="Restart").click()
    said(page, "Restarted; its cost is reserved again")
    page.locator("#work tr", has_text="Choosing questions: 3").get_by_text("waiting").wait_for()
    Job.objects.filter(pk=running.pk).update(state=WorkState.DONE, finished_at=timezone.now())

    page.get_by_role("link", name="Show all").click()
    head = guarantee(project.pool_account).chain_head
    expect(page.get_by_text(head)).to_be_visible()
    page.get_by_text("Narrow down").click()
    page.locator("[name=about]").select_option("releases")
    page.get_by_role("button", name="Show", exact=True).click()
    page.wait_for_url("**about=releases*")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_contain_text("Release 1: ")
    page.get_by_role("link", name="Check everything").click()
    said(page, "sound. Every cost, total and hash of")
    document = json.loads(downloaded(page, "Every entry with the verdict (JSON)").read_text())
    (account,) = document["accounts"]
    assert (account["chain_head"], account["verdict"]["sound"]) == (head, True)
    lines = rows_of(downloaded(page, "These lines as CSV"))
    assert len(lines) == sum(entry["kind"] not in SETTLEMENTS for entry in account["entries"])


def test_settings_and_forecasts(page: "Page", go: Callable[..., None], manager: User) -> None:
    project = learning.open_trusted(manager)
    go("annotation:settings", project.slug)
    page.get_by_role("link", name="Every setting").click()
    page.get_by_label("New labels per release").fill("10")
    page.get_by_role("button", name="Save").click()
    said(page, "Saved.")
    page.get_by_role("link", name="Back").click()
    change = page.get_by_role("region", name="What changed").locator("tr", has_text="New labels per release")
    version, _when, *rest = change.inner_text().split("\t")
    assert version == "2"
    assert rest == ["ada", "New labels per release", "12", "10"]

    learning.fill_trusted(project)
    learning.run_to_release(Project.objects.get(pk=project.pk), make_user("grace"), version=1)
    assert ModelRelease.objects.filter(project=project).exists()
    go("annotation:configuration", project.slug)
    classes = page.get_by_label("Classes", exact=True)
    assert classes.is_disabled()
    assert "Something was charged, so settings of the guarantee are fixed." in str(
        page.locator(f"#{classes.get_attribute('aria-describedby')}").inner_text()
    )

    go("annotation:label_budget", project.slug)
    page.get_by_label("Answers at most").fill("60")
    page.get_by_label("Price of an answer").fill("0.5")
    page.get_by_label("Currency").fill("EUR")
    page.get_by_role("button", name="Save").click()
    said(page, "Saved.")
    go("annotation:label_budget", project.slug)
    forecast = page.locator("main").inner_text()
    assert "answers a day lately" in forecast
    assert "EUR a week" in forecast
    assert "Left under the limit" in forecast
