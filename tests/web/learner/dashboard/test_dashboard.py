import csv
import io
import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from annotation.models import Job, Project, Role
from annotation.people.services import limits, members
from learner.models import Evaluation, Round, TrainingRun
from learner.pools.attempts import SCORES
from learner.rounds.services import loop
from privacy.ledger.selectors import guarantee
from privacy.wording import as_message
from tests import learning
from tests.clients import browser_of
from tests.factories import make_user
from tests.markup import tight

pytestmark = pytest.mark.django_db(transaction=True)
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def project(remembered: Callable[..., Project]) -> Project:
    return remembered("a changed limit", with_a_changed_limit)


def with_a_changed_limit() -> Project:
    manager = make_user("manager")
    opened = learning.open_trusted(manager)
    learning.fill_trusted(opened)
    learning.run_to_release(opened, make_user("=ann"), version=1)
    limits.change_limit(
        project=opened, account=opened.pool_account, epsilon_limit=50.0, delta_limit=0.0, actor=manager, reason="agreed"
    )
    return opened


def rows_of(client: Client, project: Project, name: str) -> list[dict[str, str]]:
    response = client.get(reverse("learner:dashboard_csv", args=[project.slug, name]))
    assert response.status_code == 200, name
    assert f'filename="{project.slug}-{name}.csv"' in response["Content-Disposition"]
    return list(csv.DictReader(io.StringIO(response.getvalue().decode(), newline="")))


def test_page_plots_and_files_tell_one_story(project: Project, manager: User) -> None:
    client = browser_of(manager)
    page = client.get(reverse("learner:dashboard", args=[project.slug])).content.decode()
    now = guarantee(project.pool_account)
    history = rows_of(client, project, "spending")
    assert float(history[-1]["epsilon_spent"]) == now.epsilon_spent > 0
    assert float(history[-1]["epsilon_limit"]) == 50.0 > float(history[0]["epsilon_limit"])
    assert float(history[-1]["epsilon_left"]) == pytest.approx(now.epsilon_left)
    purposes = rows_of(client, project, "purposes")
    by_round = [row for row in purposes if row["by"] == "Round or release"]
    assert {row["name"] for row in by_round} == {"Round 1", "Release 1"}
    assert sum(float(row["epsilon"]) for row in by_round) == pytest.approx(now.epsilon_spent)
    labels = rows_of(client, project, "labels")
    assert sum(int(row["answers"]) for row in labels) == int(labels[-1]["answers_so_far"]) == 12
    # A name that a spreadsheet would run.
    assert [row["person"] for row in rows_of(client, project, "annotators")] == ["'=ann"]
    (release,) = rows_of(client, project, "releases")
    evaluation = Evaluation.objects.get()
    assert float(release["accuracy"]) == evaluation.correct / evaluation.examples
    assert float(release["low"]) <= float(release["accuracy"]) <= float(release["high"])
    assert {row["state"] for row in rows_of(client, project, "work")} == {"done"}
    for name in ("spending", "labels", "releases"):
        address = reverse("learner:dashboard_plot", args=[project.slug, name])
        assert address in page
        drawn = client.get(address)
        assert drawn["Content-Type"] == "image/svg+xml"
        picture = ElementTree.fromstring(drawn.content)
        assert picture.findtext(f"{SVG}title")
        assert picture.findtext(f"{SVG}desc")
        assert picture.findall(f".//{SVG}path")
    assert re.search(r"12\s*</dd>", page)


def test_engineers_see_what_was_spent_and_released_and_no_answers(project: Project) -> None:
    engineer = make_user("engineer")
    members.add_member(project=project, user=engineer, role=Role.ENGINEER)
    client = browser_of(engineer)
    page = client.get(reverse("learner:dashboard", args=[project.slug])).content.decode()
    assert "Labels agreed on" not in page
    assert "Restart" not in page
    for name in ("labels", "annotators", "work", "nonsense"):
        assert client.get(reverse("learner:dashboard_csv", args=[project.slug, name])).status_code == 404
    assert client.get(reverse("learner:dashboard_plot", args=[project.slug, "labels"])).status_code == 404
    assert len(rows_of(client, project, "releases")) == 1


def test_where_answers_are_secret_no_number_or_time_of_them_is_drawn_or_filed(manager: User) -> None:
    secret = learning.open_secret(manager)
    learning.fill_trusted(secret)
    learning.work_off(secret)
    assert learning.label_everything(secret, make_user("ann"), at_most=3) == 3
    client = browser_of(manager)
    page = client.get(reverse("learner:dashboard", args=[secret.slug])).content.decode()
    assert "stay secret" in page
    assert "Labels agreed on" not in page
    for name in ("labels", "annotators"):
        assert rows_of(client, secret, name) == []
    assert client.get(reverse("learner:dashboard_plot", args=[secret.slug, "labels"])).status_code == 404


def test_work_is_cancelled_and_started_anew_from_the_page() -> None:
    manager = make_user("manager")
    project = learning.open_trusted(manager)
    learning.fill_trusted(project)
    loop.advance_project(project_id=project.pk)
    waiting = Round.objects.get()
    client = browser_of(manager)

    def buttons() -> list[str]:
        page = tight(client.get(reverse("learner:work_list", args=[project.slug])).content.decode())
        return re.findall(r'<button class="link">(\w[\w ]*)<', page)

    def press(name: str, row: object) -> None:
        kind = "job" if isinstance(row, Job) else "round"
        response = client.post(reverse(name, args=[project.slug, kind, row.pk]))
        assert response.status_code == 302

    assert buttons() == ["Cancel"]
    press("learner:retry_work", waiting)
    assert Round.objects.count() == 1
    press("learner:cancel_work", waiting)
    waiting.refresh_from_db()
    assert (waiting.state, waiting.cancelled_by) == ("failed", "manager")
    assert buttons() == ["Restart"]
    press("learner:retry_work", waiting)
    press("learner:retry_work", waiting)
    assert [each.state for each in Round.objects.order_by("number")] == ["failed", "waiting"]
    assert buttons() == ["Cancel"]
    for kind, key in (("job", "nonsense"), ("round", "x"), ("nothing", "1"), ("round", "99999")):
        assert client.post(reverse("learner:cancel_work", args=[project.slug, kind, key])).status_code == 404


@pytest.mark.parametrize("kind", [Round, TrainingRun])
def test_a_running_round_or_training_has_a_bar_and_says_what_it_does(
    manager: User, kind: type[Round | TrainingRun]
) -> None:
    project = learning.open_trusted(manager)
    of_round, of_training = {"number": 1, "requested": 5}, {"version": 1, "last_consensus_id": 0, "labels_used": 3}
    row = kind.objects.create(project=project, **(of_round if kind is Round else of_training))
    client = browser_of(manager)
    page = reverse("learner:work_list", args=[project.slug])

    def shown(language: str = "en", **changes: object) -> str:
        kind.objects.filter(pk=row.pk).update(**changes)
        return tight(client.get(page, headers={"accept-language": language}).content.decode())

    assert "<progress" not in shown()
    step = as_message(
        "Step {step} of {steps}: {reason}, {done} of {total}.", step=3, steps=4, reason=SCORES, done=1, total=4
    )
    told = {"progress_done": 225, "progress_total": 400, "message": step}
    running = shown(state="running", attempt=1, started_at="2026-01-01T00:00:00Z", **told)
    assert re.search(r'<progress value="56" max="100" aria-label="Progress: [^"]+ 1">56 %</progress>', running)
    assert "Step 3 of 4: the pool is scored, 1 of 4." in running
    assert 'hx-trigger="every' in running
    assert "Schritt 3 von 4: der Bestand wird bewertet, 1 von 4." in shown("de")
    stopping = shown(cancelled_by="manager")
    assert "stopping" in stopping
    assert "<progress" in stopping
    ended = {"state": "failed", "finished_at": "2026-01-01T00:01:00Z"}
    assert "<progress" not in shown(**ended)
    failed = shown(cancelled_by="", error="lost")
    assert "<progress" not in failed
    assert "Step 3" not in failed
    assert "hx-trigger" not in failed
