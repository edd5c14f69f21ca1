import hashlib
import re

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Role
from annotation.people.services import members
from annotation.projects.services.classes import rename_class
from learner.models import ModelRelease, ReleaseState
from learner.releases import evaluations, storage
from learner.releases.services import checks
from tests import learning
from tests.clients import browser_of
from tests.factories import make_user
from tests.markup import tight

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(remembered, request):
    return learning.begin_experts(remembered, released="release" in request.fixturenames)


def member(project, role: str) -> Client:
    person = make_user()
    members.add_member(project=project, user=person, role=role)
    return browser_of(person)


def pages(project, version: int) -> list[str]:
    of_project = [reverse("learner:releases", args=(project.slug,))]
    of_release = [reverse("learner:release", args=(project.slug, version))]
    return [*of_project, *of_release, reverse("learner:release_file", args=(project.slug, version, "card.md"))]


def test_a_manager_is_told_the_price_of_training_on_few_questions_and_says_the_word(manager):
    project = learning.open_trusted(manager, selection="random", round_size=50, labels_per_release=50)
    learning.fill_trusted(project, number=20)
    learning.work_off(project)
    learning.label_everything(project, make_user())
    learning.work_off(project)
    overview, train = (reverse(f"learner:{name}", args=(project.slug,)) for name in ("overview", "train_on_few"))
    browser = browser_of(manager)
    for page in (overview, reverse("learner:next_step", args=(project.slug,))):
        html = " ".join(browser.get(page).content.decode().split())
        assert "20 of 50 questions are done for version 1" in html
        assert "Train now for ε 2.000, δ 0" in html
        assert f'action="{train}"' in html
    assert member(project, Role.ENGINEER).post(train).status_code == 403
    assert member(project, Role.ANNOTATOR).post(train).status_code == 404
    assert browser.get(train).status_code == 405
    assert not project.training_runs.exists()
    assert browser.post(train).url == overview
    assert project.training_runs.get().labels_used == 20
    assert "Train on" not in browser.get(overview).content.decode()
    assert browser.post(train).status_code == 409


def test_a_release_page_opens_with_the_limit_and_shows_what_is_spent(project, release, manager):
    page = browser_of(manager).get(reverse("learner:release", args=(project.slug, 1))).content.decode()
    assert "ε 20.000" in page
    assert "2.000 spent so far" in page
    assert "at most 12 questions" in page
    assert "12 agreed on" in page
    measured = release.evaluations.get()
    assert f"{100 * measured.correct / measured.examples:.1f}\u00a0%" in page
    for name, digest in release.digests.items():
        assert name in page
        assert digest in page
    assert "Release 1: " in page


def test_a_release_keeps_the_name_its_class_had_and_says_so(project, release, manager):
    name, other = release.weights["classes"]
    rename_class(project=project, name=name, to="food", known_beforehand=True, actor=manager)
    page = browser_of(manager).get(reverse("learner:release", args=(project.slug, 1))).content.decode()
    assert "Classes renamed since" in page
    assert f"{name} → food" in page
    # A file may use either name, and the model is measured by both.
    learning.upload(
        project, [["a pear", name], ["a plum", "food"], ["a saw", other]], ["text", "label"], role="public_test"
    )
    evaluations.evaluate_release(release=release)
    assert release.evaluations.latest("pk").examples == 3
    release.refresh_from_db()
    assert release.weights["classes"] == [name, other]


def test_each_entry_a_release_descends_from_is_a_line_of_the_statement(project, release, manager):
    client = browser_of(manager)
    page = client.get(reverse("learner:release", args=(project.slug, 1))).content.decode()
    lines = re.findall(r'href="([^"]*)&amp;entry=(\d+)">\s*(\d+)</a>', page)
    entries = release.lineage.select_related("parent").order_by("account_id", "sequence")
    assert [int(shown) for _, _, shown in lines] == [entry.parent.sequence for entry in entries]
    card = client.get(reverse("learner:release_file", args=(project.slug, 1, "card.md"))).getvalue().decode()
    for (address, number, shown), entry in zip(lines, entries, strict=True):
        assert number == shown
        found = client.get(f"{address}&entry={number}".replace("&amp;", "&")).context["page"].lines
        assert [line.sequence for line in found] == [entry.parent.sequence]
        assert f"Settled as #{entry.sequence}." in page
        again = client.get(address, {"entry": entry.sequence}).context["page"].lines
        assert [line.sequence for line in again] == [entry.parent.sequence]
    named = re.findall(r"\| [^|]*#(\d+) \|", card)
    assert named
    for number in named:
        assert client.get(address.split("?")[0], {"entry": number}).context["page"].lines, number


def test_a_downloaded_file_has_the_digest_the_page_names(project, release, manager):
    client = browser_of(manager)
    for name, digest in release.digests.items():
        response = client.get(reverse("learner:release_file", args=(project.slug, 1, name)))
        assert hashlib.sha256(response.getvalue()).hexdigest() == digest
    assert client.get(reverse("learner:release_file", args=(project.slug, 1, "other.txt"))).status_code == 404
    assert client.get(reverse("learner:release", args=(project.slug, 2))).status_code == 404


def test_only_a_manager_retires_a_release_and_says_why(project, release, manager):
    address = reverse("learner:retire", args=(project.slug, 1))
    assert member(project, Role.ENGINEER).post(address, {"reason": "no"}).status_code == 403
    client = browser_of(manager)
    assert client.get(address).status_code == 200
    assert client.post(address, {"reason": " "}).status_code == 422
    assert client.post(address, {"reason": "trained on <wrong> guidelines"}).status_code == 302
    release.refresh_from_db()
    assert release.state == ReleaseState.RETIRED
    page = client.get(reverse("learner:release", args=(project.slug, 1))).content.decode()
    assert "trained on &lt;wrong&gt; guidelines" in page


@pytest.mark.slow
def test_the_number_of_statements_does_not_grow_with_the_releases(project, manager, django_assert_max_num_queries):
    annotator = make_user()
    learning.run_to_release(project, annotator, version=3)
    client = browser_of(manager)
    # Six of them find what the project waits for.
    with django_assert_max_num_queries(49):
        client.get(reverse("learner:overview", args=(project.slug,)))
    with django_assert_max_num_queries(25):
        client.get(reverse("learner:releases", args=(project.slug,)))


def test_a_manager_closes_a_block_early(manager):
    project = learning.open_secret(manager)
    client = browser_of(manager)
    address = reverse("learner:close_block", args=(project.slug,))
    assert client.get(address).status_code == 404
    assert address not in client.get(reverse("learner:overview", args=(project.slug,))).content.decode()
    learning.fill_trusted(project)
    learning.work_off(project)
    overview = client.get(reverse("learner:overview", args=(project.slug,))).content.decode()
    assert "Block 1 closes and version 1 is trained at" in overview
    assert address in overview
    asked = client.get(address).content.decode()
    assert "open questions are withdrawn" in asked
    assert "Close block 1 now?" in asked
    assert re.search(r"Otherwise the block closes on [^.]*\d{4}", asked)
    assert member(project, Role.ENGINEER).post(address).status_code == 403
    assert client.post(address).status_code == 302
    learning.work_off(project, version=1)
    engineer = member(project, Role.ENGINEER)
    assert "secret: rate 0.2000 of 120" in engineer.get(pages(project, 1)[0]).content.decode()
    assert (
        "each of 120 records took part with probability at most 0.2"
        in engineer.get(pages(project, 1)[1]).content.decode()
    )


def test_a_page_has_the_numbers_the_key_and_what_changed(project, manager):
    learning.run_to_release(project, make_user(), version=2)
    engineer, managing = member(project, Role.ENGINEER), browser_of(manager)
    address = reverse("learner:release", args=(project.slug, 2))
    shown, inside = (client.get(address).content.decode() for client in (engineer, managing))
    release = project.releases.get(version=2)
    found = release.evaluations.get().measures
    for page in (shown, inside):
        assert storage.signer().public_key in page
        assert release.environment["dpal"] in page
        assert f"{100 * found['macro_f1']['value']:.1f}\u00a0%" in page
        assert "What differs from version 1" in page
        assert "Distance the weights moved" in page
        assert "ε spent" in page
        assert "guidelines</code>" not in page
    assert "Labels agreed on" in inside
    assert "Labels agreed on" not in shown


class TestCandidate:
    @pytest.fixture
    def held(self, project, monkeypatch) -> ModelRelease:
        with monkeypatch.context() as patch:
            patch.setattr(checks, "check_release", lambda **_: None)
            candidate = learning.run_to_release(project, make_user(), version=1)
        (storage.folder_of(candidate) / "card.md").write_text("epsilon 0")
        return checks.check_release(release_id=candidate.pk)

    def test_its_page_says_why_and_offers_no_file(self, project, held, manager):
        page = reverse("learner:release", args=(project.slug, 1))
        engineer = member(project, Role.ENGINEER)
        for client, offered in ((browser_of(manager), True), (engineer, False)):
            shown = client.get(page).content.decode()
            assert "Held back" in shown
            assert "card.md do not match the manifest" in shown
            assert ("Check again" in shown) is offered
            assert reverse("learner:release_file", args=(project.slug, 1, "weights.json")) not in shown
        assert engineer.get(pages(project, 1)[2]).status_code == 409

    def test_a_manager_has_it_checked_again(self, project, held, manager, sent_tasks):
        address = reverse("learner:check_again", args=(project.slug, 1))
        sent_tasks.clear()
        assert member(project, Role.ENGINEER).post(address).status_code == 403
        assert browser_of(make_user()).post(address).status_code == 404
        assert browser_of(manager).get(address).status_code == 405
        assert sent_tasks == []
        assert browser_of(manager).post(address).status_code == 302
        assert sent_tasks == ["learner.tasks.check_release_task"]
        assert checks.unchecked_releases().get() == held
        assert "Being checked" in browser_of(manager).get(pages(project, 1)[1]).content.decode()

    def test_one_that_a_constant_beats_says_so_and_waits_for_a_managers_word(self, project, release, manager):
        learning.beaten_on_another_set(release)
        page, address = pages(project, 1)[1], reverse("learner:endorse", args=(project.slug, 1))
        engineer = member(project, Role.ENGINEER)
        for client, asked in ((browser_of(manager), True), (engineer, False)):
            shown = client.get(page).content.decode()
            # Beside the number on top, and beside it in the table of versions.
            assert shown.count("No better than always giving one answer") >= 2
            assert "A sentence encoder instead of hashed words" in shown
            assert ("Offer it as the latest" in shown) is asked
        assert engineer.post(address, {"reason": "x"}).status_code == 403
        assert browser_of(manager).post(address, {"reason": " "}).status_code == 422
        assert browser_of(manager).post(address, {"reason": "the test set is old"}).status_code == 302
        assert "Offered as the latest: the test set is old" in engineer.get(page).content.decode()


def test_the_card_is_shown_as_it_was_released_and_no_other(project, release, manager):
    client, address = browser_of(manager), reverse("learner:release", args=(project.slug, 1))
    shown = tight(client.get(address).content.decode())
    assert '<section class="card document" lang="en">' in shown
    assert "<h3>Guarantee</h3>" in shown
    assert "Not covered:" in shown
    assert "<p>Round 1.</p>" in shown
    assert f"<dt>dpal</dt><dd><code>{release.environment['dpal']}</code>" in shown
    assert f"<dt>numpy</dt><dd><code>{release.environment['numpy']}</code>" in shown
    card = storage.folder_of(release) / "card.md"
    card.write_text(card.read_text().replace("Not covered", "Covered"))
    changed = client.get(address).content.decode()
    assert "The stored card differs from the" in changed
    assert "<h3>Guarantee</h3>" not in changed
