import csv
import io
import json
import re
from datetime import time
from io import BytesIO
from uuid import uuid4

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from PIL import Image

from annotation.data.readers.images import as_webp
from annotation.data.services.label_files import TABLE_COLUMNS, export_labels
from annotation.models import Assignment, AssignmentState, Consensus, Label, Picture, Project, Query, Role
from annotation.questions.services import labels, queue
from annotation.questions.views.label_parts import ASSIGNMENT, KEY, TOKEN
from tests.clients import browser_of, program_of
from tests.factories import (
    add_members,
    answer_once,
    asked_project,
    make_annotators,
    make_candidates,
    make_project,
    make_records,
    make_user,
    open_records,
    write_settings,
)
from tests.markup import tight

pytestmark = pytest.mark.django_db
PART = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture
def annotator(project):
    (person,) = make_annotators(project, 1)
    return person


@pytest.fixture
def web(annotator):
    return browser_of(annotator)


def page(project):
    return reverse("annotation:label", args=(project.slug,))


def url(name):
    return reverse(f"annotation:{name}", args=(Assignment.objects.get(state=AssignmentState.LEASED).pk,))


class TestWhatIsShown:
    def test_a_text_with_its_classes_and_its_receipt(self, project, web):
        open_records(project, 1)
        response = web.get(page(project))
        assert response.status_code == 200
        assert "no-store" in response["Cache-Control"]
        html = response.content.decode()
        assert "What is this about?" in html
        assert "record 0" in html
        assert 'value="2" data-shortcut="3"' in html
        assert "Private: do not copy or share" in html
        assert Assignment.objects.get().state == AssignmentState.LEASED

    @pytest.mark.parametrize(
        ("values", "keys", "said"),
        [
            ({"classes": ["a", "b"]}, "1, 2", "choose a class"),
            ({"classes": ["a", "b", "c"]}, "1 - 3", "choose a class"),
            ({"classes": ["a", "b", "c"], "confirm_answers": True}, "1 - 3", "choose a class"),
            ({"classes": list("abcdefghij")}, "1 - 9, 0", "choose one of the first ten classes"),
            ({"classes": ["0", "1", "2"], "question_kind": "rating"}, "0 - 2", "choose a class"),
        ],
    )
    def test_the_help_names_the_keys_that_the_project_has(self, values, keys, said):
        project, _, (person,) = asked_project(**values)
        shown = browser_of(person).get(page(project)).content.decode().partition('<dl class="keys">')[2]
        terms, _, rest = shown.partition("<dd>")
        assert " ".join(re.sub(r"<[^>]+>", "", terms).split()).replace(" ,", ",") == keys
        assert rest.strip().startswith(said)

    def test_who_answers_for_a_secret_sample_is_told_to_keep_it(self):
        project, _, (person,) = asked_project(selection="secret_sample", selection_rate=0.1)
        html = browser_of(person).get(reverse("annotation:why", args=(project.slug,))).content.decode()
        assert "This record was chosen in secret" in html
        assert "Please tell no one" in html

    @pytest.mark.parametrize(
        ("selection", "said"),
        [
            ("random", "This text was drawn at random."),
            ("uncertainty", "Asks what the newest model"),
            ("clustered_uncertainty", "a rule that knows these texts and released models only."),
        ],
    )
    def test_a_text_is_said_to_be_drawn_at_random_where_it_was(self, selection, said):
        project = make_project(oracle="crowd", selection=selection)
        (person,) = make_annotators(project, 1)
        html = tight(browser_of(person).get(reverse("annotation:why", args=(project.slug,))).content.decode())
        assert said in html
        assert ("This text was drawn at random" in html) == (selection == "random")

    def test_nobody_is_led_back_to_a_question_that_does_not_wait(self):
        project, _, (person,) = asked_project()
        browser = browser_of(person)
        why = reverse("annotation:why", args=(project.slug,))
        assert ">Back<" in browser.get(why).content.decode()
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
        html = browser.get(why).content.decode()
        assert ">Back<" not in html
        assert "No question right now." in html

    @pytest.mark.parametrize(
        ("unit", "sentence"),
        [
            ("contributor", "At least 17 people in a secret random sample say exactly this."),
            ("record", "At least 17 records in a secret random sample say exactly this."),
        ],
    )
    def test_a_crowd_is_told_how_many_said_the_same(self, unit, sentence):
        project = make_project(oracle="crowd", privacy_unit=unit, selection="uncertainty")
        (candidate,) = make_candidates(project, ["play the radio"])
        queue.open_queries(project=project, round_number=1, query_ids=[candidate.pk])
        (person,) = make_annotators(project, 1)
        html = browser_of(person).get(page(project)).content.decode()
        assert "play the radio" in html
        assert sentence in html

    def test_markup_in_a_record_is_text(self, project, web):
        (record,) = make_records(project, ["<script>alert(1)</script>"])
        queue.open_queries(project=project, round_number=1, record_ids=[record.pk])
        html = web.get(page(project)).content.decode()
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
        assert "<script>alert" not in html

    def test_a_table_shows_its_declared_fields_and_no_other(self):
        columns = [{"name": "amount", "low": 0, "high": 9}, {"name": "country", "categories": ["NO", "SE"]}]
        project = make_project(data_kind="table", columns=columns)
        (record,) = make_records(project, payloads=[{"amount": 3.5, "country": None, "undeclared": "unseen"}])
        queue.open_queries(project=project, round_number=1, record_ids=[record.pk])
        (person,) = make_annotators(project, 1)
        html = tight(browser_of(person).get(page(project)).content.decode())
        assert ">3.5<small" in html
        assert "of 0 to 9" in html
        assert "not given" in html
        assert "unseen" not in html

    def test_an_image_comes_as_png_to_its_annotator_only(self, own_storage):
        pixels = np.arange(2 * 4 * 5, dtype=np.uint8).reshape(2, 4, 5)
        np.save(own_storage / "pixels.npy", pixels)
        project = make_project(data_kind="image", image_height=4, image_width=5)
        records = make_records(project, rows=2, pixels="pixels.npy")
        queue.open_queries(project=project, round_number=1, record_ids=[records[1].pk])
        person, other = make_annotators(project, 2)
        html = browser_of(person).get(page(project)).content.decode()
        assert "5 by 4 pixels" in html
        response = browser_of(person).get(url("question_image"))
        assert response["Content-Type"] == "image/png"
        assert "no-store" in response["Cache-Control"]
        assert np.array_equal(np.asarray(Image.open(BytesIO(response.content))), pixels[1])
        assert browser_of(other).get(url("question_image")).status_code == 404

    @pytest.mark.parametrize("size", [(60, 40), (900, 600)])
    def test_a_picture_comes_in_colour_to_its_annotator_only(self, own_storage, size):
        np.save(own_storage / "pixels.npy", np.zeros((1, 4, 5), dtype=np.uint8))
        project = make_project(data_kind="image", image_height=4, image_width=5)
        (record,) = make_records(project, rows=1, pixels="pixels.npy")
        noise = np.random.default_rng(2).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        content = as_webp(Image.fromarray(noise))
        Picture.objects.create(record=record, width=size[0], height=size[1], content=content)
        queue.open_queries(project=project, round_number=1, record_ids=[record.pk])
        person, other = make_annotators(project, 2)
        html = browser_of(person).get(page(project)).content.decode()
        assert f"{size[0]} by {size[1]} pixels" in html
        # What is small comes with its page, what is large by itself.
        assert ("data:image/webp;base64," in html) is (len(content) < 48 * 1024) is (size[0] < 100)
        response = browser_of(person).get(url("question_image"))
        assert (response["Content-Type"], response.content) == ("image/webp", content)
        assert response["X-Content-Type-Options"] == "nosniff"
        assert {"no-store", "private"} <= set(response["Cache-Control"].split(", "))
        assert browser_of(other).get(url("question_image")).status_code == 404

    def test_a_text_has_no_image(self, project, web):
        open_records(project, 1)
        web.get(page(project))
        assert web.get(url("question_image")).status_code == 404

    def test_more_than_a_hundred_waiting_is_not_counted(self, project, web):
        open_records(project, 150)
        assert "more than 100 waiting" in web.get(page(project)).content.decode()

    def test_own_answers_of_today_are_counted(self, project, web):
        open_records(project, 3)
        web.get(page(project))
        for done in (1, 2):
            html = web.post(url("submit"), {"choice": 0}, **PART).content.decode()
            assert f"Answered today: {done}" in html
        assert "Answered today: 2" in web.get(page(project)).content.decode()


class TestEmpty:
    def empty(self, web, project):
        response = web.get(page(project))
        assert response.status_code == 200
        html = response.content.decode()
        assert 'hx-trigger="every 4s"' in html
        assert 'http-equiv="refresh"' in html
        return html

    def test_quiet_hours_and_the_next_day_are_told_by_the_viewers_clock(self):
        """The site's clock is UTC: Kathmandu is five hours and three quarters ahead of it all year."""
        hour = timezone.now().hour
        project = make_project(quiet_from=time(hour), quiet_until=time((hour + 2) % 24), question="?")
        person, other = make_annotators(project, 2)
        viewer = browser_of(person)
        viewer.cookies["timezone"] = "Asia/Kathmandu"
        viewer.cookies["django_language"] = "de"
        html = viewer.get(page(project)).content.decode()
        begins, ends = (f"{(hour + ahead) % 24:02d}:45" for ahead in (5, 7))
        assert f"Fragen gibt es wieder um {ends}" in html
        assert f"von {begins} bis {ends} (Asia/Kathmandu)" in html
        write_settings(project, quiet_from=None, quiet_until=None, answers_per_day=1)
        answer_once(project)
        assert "ab 05:45 (Asia/Kathmandu)" in viewer.get(page(project)).content.decode()
        assert (
            "ab 00:00 (UTC)" in browser_of(other).get(page(project), headers={"accept-language": "de"}).content.decode()
        )

    @pytest.mark.parametrize(("role", "status"), [(None, 404), (Role.MANAGER, 403)])
    def test_who_is_not_invited_sees_the_page_once_they_are(self, project, role, status):
        person = make_user()
        if role:
            add_members(project, person, role=role)
        client = browser_of(person)
        html = client.get(page(project))
        assert html.status_code == status
        assert f'hx-get="{page(project)}?shown=not_member"' in html.content.decode()
        again = page(project) + "?shown=not_member"
        assert client.get(again, **PART).status_code == 204
        add_members(project, person, role=Role.ANNOTATOR)
        assert client.get(again, **PART)["HX-Refresh"] == "true"

    def test_asking_again_changes_the_page_only_when_there_is_news(self, project, web):
        web.get(page(project))
        again = page(project) + "?shown=waiting_for_first"
        assert web.get(again, **PART).status_code == 204
        open_records(project, 1)
        html = web.get(again, **PART).content.decode()
        assert "record 0" in html
        assert "<html" not in html


class TestAnswering:
    def test_without_scripts_a_post_leads_to_the_next_question(self, project, web):
        open_records(project, 2)
        web.get(page(project))
        response = web.post(url("submit"), {"choice": 1})
        assert (response.status_code, response["Location"]) == (303, page(project))
        assert "record 1" in web.get(page(project)).content.decode()
        assert Label.objects.get().choice == 1

    def test_with_scripts_the_answer_is_the_next_question(self, project, web):
        open_records(project, 2)
        web.get(page(project))
        response = web.post(url("submit"), {"choice": 1}, **PART)
        html = response.content.decode()
        assert response.status_code == 200
        assert "<html" not in html
        assert "record 1" in html
        assert "Take back: music" in html

    def test_the_same_click_twice_is_one_label(self, project, web):
        open_records(project, 2)
        web.get(page(project))
        submit = url("submit")
        for _ in range(2):
            assert web.post(submit, {"choice": 1}).status_code == 303
        assert Label.objects.count() == 1

    def test_another_class_afterwards_is_a_refusal_that_says_why(self, project, web):
        open_records(project, 2)
        web.get(page(project))
        submit = url("submit")
        web.post(submit, {"choice": 1})
        response = web.post(submit, {"choice": 2})
        assert response.status_code == 409
        assert "You answered this question." in response.content.decode()

    @pytest.mark.parametrize("sent", [{}, {"choice": "9"}, {"choice": "-1"}, {"choice": "sport"}])
    def test_a_class_that_does_not_exist_keeps_the_question(self, project, web, sent):
        open_records(project, 1)
        web.get(page(project))
        response = web.post(url("submit"), sent)
        assert response.status_code == 422
        html = response.content.decode()
        assert "record 0" in html
        assert '<p class="problem" id="problem" role="alert">' in html
        assert not Label.objects.exists()

    def test_coming_back_to_an_answers_address_leads_to_the_page(self, project, web):
        open_records(project, 1)
        web.get(page(project))
        for name in ("submit", "skip"):
            response = web.get(url(name))
            assert (response.status_code, response["Location"]) == (303, page(project))

    def test_skipping_gives_the_question_back_with_the_reason(self, project, web):
        open_records(project, 2)
        make_annotators(project, 1)
        web.get(page(project))
        response = web.post(url("skip"), {"reason": "language"}, **PART)
        assert "record 1" in response.content.decode()
        skipped = Assignment.objects.get(state=AssignmentState.SKIPPED)
        assert skipped.skip_reason == "language"
        assert Query.objects.get(pk=skipped.query_id).open_slots == 1

    def test_a_reason_nobody_offered_is_refused(self, project, web):
        open_records(project, 1)
        web.get(page(project))
        assert web.post(url("skip"), {"reason": "made up"}).status_code == 422
        assert not Assignment.objects.filter(state=AssignmentState.SKIPPED).exists()

    def test_undo_shows_the_question_again_with_the_earlier_answer(self, project, web):
        open_records(project, 2)
        web.get(page(project))
        web.post(url("submit"), {"choice": 1}, **PART)
        html = tight(web.post(reverse("annotation:undo", args=(project.slug,)), **PART).content.decode())
        assert "record 0" in html
        assert 'data-shortcut="2" aria-pressed="true"' in html
        assert "Take back" not in html

    def test_undo_without_scripts(self, project, web):
        open_records(project, 2)
        web.get(page(project))
        web.post(url("submit"), {"choice": 1})
        undo = reverse("annotation:undo", args=(project.slug,))
        assert "Take back: music" in web.get(page(project)).content.decode()
        assert web.post(undo).status_code == 303
        assert "record 0" in web.get(page(project)).content.decode()
        assert web.post(undo).status_code == 409
        assert web.get(undo).status_code == 405

    def test_an_answer_a_training_used_offers_no_undo(self, project, web):
        open_records(project, 2)
        web.get(page(project))
        web.post(url("submit"), {"choice": 1})
        labels.mark_labels_used(project=project, last_consensus_id=Consensus.objects.get().pk)
        assert "Take back" not in web.get(page(project)).content.decode()


class TestWhoMay:
    def test_a_stranger_logs_in_first_and_comes_back(self, project):
        response = Client().get(page(project))
        assert (response.status_code, response["Location"]) == (302, f"{reverse('login')}?next={page(project)}")

    def test_a_part_of_a_page_leads_the_whole_page_to_the_login(self, project, web):
        open_records(project, 1)
        web.get(page(project))
        submit = url("submit")
        response = Client().post(submit, {"choice": 0}, **PART, HTTP_HX_CURRENT_URL=f"http://testserver{page(project)}")
        assert response["HX-Redirect"] == f"{reverse('login')}?next={page(project)}"
        assert not Label.objects.exists()

    @pytest.mark.parametrize("role", [Role.MANAGER, Role.ENGINEER])
    def test_another_role_is_not_asked(self, project, role):
        open_records(project, 1)
        person = make_user()
        add_members(project, person, role=role)
        response = browser_of(person).get(page(project))
        assert response.status_code == 403
        assert "A manager of the project can" in response.content.decode()
        assert not Assignment.objects.exists()

    @pytest.mark.parametrize("name", ["submit", "skip", "question_image"])
    def test_another_persons_assignment_does_not_exist(self, project, web, name):
        open_records(project, 1)
        web.get(page(project))
        (other,) = make_annotators(project, 1)
        theirs = browser_of(other)
        if name == "question_image":
            # Only shown, so nothing can be sent to it, whoever it belongs to.
            assert theirs.get(url(name)).status_code == 404
            assert theirs.post(url(name), {"choice": 0, "reason": "unsure"}).status_code == 405
        else:
            assert theirs.post(url(name), {"choice": 0, "reason": "unsure"}).status_code == 404
        assert not Label.objects.exists()

    def test_somebody_who_lost_the_role_cannot_answer_any_more(self, project, web, annotator):
        open_records(project, 1)
        web.get(page(project))
        submit = url("submit")
        annotator.memberships.all().delete()
        assert web.post(submit, {"choice": 0}).status_code == 404

    @pytest.mark.parametrize("name", ["submit", "skip"])
    def test_a_request_another_site_forged_is_refused(self, project, annotator, name):
        open_records(project, 1)
        forged = browser_of(annotator, enforce_csrf_checks=True)
        forged.get(page(project))
        response = forged.post(url(name), {"choice": 0, "reason": "unsure"})
        assert response.status_code == 403
        assert "open for too long" in response.content.decode()
        assert Assignment.objects.get().state == AssignmentState.LEASED


class TestCommonPages:
    def test_every_page_forbids_inline_scripts_and_styles(self, project, web):
        open_records(project, 1)
        for address in (page(project), reverse("login"), "/nothing/here/"):
            response = web.get(address)
            html = response.content.decode()
            assert "script-src 'self'" in response["Content-Security-Policy"]
            assert " style=" not in html
            assert "<style" not in html
            assert " onclick=" not in html

    def test_login_and_logout(self):
        person = make_user("ada")
        person.set_password("correct horse battery")
        person.save()
        client = Client()
        wrong = client.post(reverse("login"), {"login": "ada", "password": "wrong"})
        assert "do not match" in wrong.content.decode()
        right = client.post(reverse("login"), {"login": "ada", "password": "correct horse battery"})
        assert (right.status_code, right["Location"]) == (302, reverse("annotation:projects"))
        assert client.get(reverse("logout")).status_code == 405
        assert client.post(reverse("logout"))["Location"] == reverse("login")


@pytest.mark.django_db(transaction=True)
class TestStatements:
    @pytest.mark.parametrize(("overlap", "answered_before"), [(1, 0), (3, 0), (3, 2)])
    def test_submit_and_next(self, overlap, answered_before):
        project, _, people = asked_project(50, 8, overlap=overlap)
        for person in people[:answered_before]:
            labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
        web = browser_of(people[-1])
        web.get(page(project))
        submit = reverse("annotation:submit", args=(Assignment.objects.get(annotator=people[-1]).pk,))
        with CaptureQueriesContext(connection) as statements:
            response = web.post(submit, {"choice": 0}, **PART)
        assert "Answered today: 1" in response.content.decode()
        assert len(statements) <= 10, [statement["sql"] for statement in statements]
        if overlap == 1:
            # Session with its person, lease, BEGIN, answer, consensus, COMMIT, next question.
            assert len(statements) == 7, [statement["sql"] for statement in statements]

    def test_submit_and_next_without_scripts(self):
        project, _, (person,) = asked_project(5)
        web = browser_of(person)
        web.get(page(project))
        submit = url("submit")
        with CaptureQueriesContext(connection) as statements:
            web.post(submit, {"choice": 0})
            web.get(page(project))
        read_or_write = [one["sql"] for one in statements if one["sql"] not in ("BEGIN", "COMMIT")]
        assert len(read_or_write) <= 10, read_or_write


class TestParts:
    """What is rendered once is right for everybody: person, project and language."""

    def test_two_people_get_their_own_ids_and_tokens(self):
        project, _, people = asked_project(2, 2)
        pages = [tight(browser_of(person).get(page(project)).content.decode()) for person in people]
        for marker in ('hx-post="/assignments/([^/]+)/submit/"', 'name="key" value="([^"]+)"'):
            found = [set(re.findall(marker, content)) for content in pages]
            assert [len(each) for each in found] == [1, 1]
            assert not found[0] & found[1]
        for content in pages:
            assert not {ASSIGNMENT, KEY, TOKEN} & set(
                re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", content)
            )

    def test_other_classes_are_other_buttons_at_once(self):
        project, _, (person,) = asked_project(classes=["a <b>", "c"])
        web = browser_of(person)
        assert "a &lt;b&gt;" in web.get(page(project)).content.decode()
        assert "d &amp;" not in web.get(page(project)).content.decode()
        Project.objects.filter(pk=project.pk).update(classes=["a <b>", "c", "d &", "e"])
        write_settings(project, confirm_answers=True)
        content = web.get(page(project)).content.decode()
        assert "d &amp;" in content
        assert content.count('type="radio"') == 4

    @pytest.mark.parametrize(("number", "page_bytes", "part_bytes"), [(60, 60_000, 8_000), (1000, 400_000, 8_000)])
    def test_many_classes_come_once_and_no_question_brings_them_again(self, number, page_bytes, part_bytes):
        project, _, (person,) = asked_project(
            3, classes=[f"a class with a longer name {place}" for place in range(number)]
        )
        web = browser_of(person)
        whole = web.get(page(project)).content.decode()
        assert len(whole.encode()) < page_bytes
        assert whole.count("<option ") == number + 1
        assert whole.count("data-value=") == number
        part = web.post(url("submit"), {"choice": number - 1}, **PART).content.decode()
        assert "record 1" in part
        assert len(part.encode()) < part_bytes
        assert Label.objects.get().choice == number - 1

    def test_the_language_is_the_viewers(self):
        project, _, (person,) = asked_project()
        web = browser_of(person)
        assert "Skip</summary>" in web.get(page(project)).content.decode()
        assert "Skip</summary>" not in web.get(page(project), headers={"accept-language": "de"}).content.decode()


MANY = [f"class {n}" for n in range(40)]
# Drawn anew for each page, or numbered by the test.
DRAWN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[A-Za-z0-9]{64}\b|(?i:project|person)(?:[- ]|=.)\d+")


def suggested(*, shown: bool | None, **fields: object) -> tuple[Project, Client, Query]:
    """Return a project with one question that has a suggestion (None: it has none), and its annotator's browser."""
    project, (query,), (person,) = asked_project(**fields)
    if shown is not None:
        Query.objects.filter(pk=query.pk).update(suggested=1, suggested_percent=72, suggestion_shown=shown)
    client = browser_of(person)
    return project, client, query


def page_of(client: Client, project: Project) -> str:
    return tight(client.get(reverse("annotation:label", args=[project.slug])).content.decode())


@pytest.mark.parametrize("fields", [{}, {"confirm_answers": True}, {"classes": MANY}])
def test_a_blind_question_looks_as_if_the_model_had_said_nothing(fields):
    blind, without, shown = (suggested(shown=each, **fields)[:2] for each in (False, None, True))
    pages = [DRAWN.sub("*", page_of(client, project)) for project, client in (blind, without, shown)]
    assert pages[0] == pages[1] != pages[2]


def test_it_stands_beside_the_question_with_its_doubt_and_one_key():
    project, client, _query = suggested(shown=True)
    page = page_of(client, project)
    assert 'The model suggests<strong dir="auto">music</strong>(72 % sure). It may be wrong' in page
    (button,) = re.findall(r'<button class="choice suggested"[^>]*>', page)
    assert 'data-shortcut="2 a"' in button
    assert 'value="1"' in button
    held = project.assignments.get()
    sent = {"choice": "1", "key": str(uuid4())}
    assert client.post(reverse("annotation:submit", args=[held.pk]), sent).status_code == 303
    assert Label.objects.get().choice == 1


def test_where_answers_are_confirmed_the_key_only_chooses():
    project, client, _query = suggested(shown=True, confirm_answers=True)
    page = page_of(client, project)
    (choice,) = re.findall(r'<label class="choice suggested"[^>]*>', page)
    assert 'data-shortcut="2 a"' in choice
    assert " checked" not in page


def test_with_many_classes_a_button_takes_it_and_the_key_needs_shift():
    project, client, _query = suggested(shown=True, classes=MANY)
    page = page_of(client, project)
    (button,) = re.findall(r'<p class="accept"><button[^>]*>', page)
    assert 'value="1" data-shortcut="a"' in button
    assert 'data-suggested="1"' in page
    confirmed, browser, _query = suggested(shown=True, classes=MANY, confirm_answers=True)
    shown = page_of(browser, confirmed)
    assert 'class="accept"' not in shown
    assert 'data-suggested="1"' in shown


@pytest.mark.parametrize("shown", [True, False])
def test_a_program_is_told_what_the_page_would_show(shown):
    project, _client, _query = suggested(shown=shown)
    person = project.memberships.get(role="annotator").user
    client = program_of(person, "labels:write")
    body = client.post(f"/api/v1/projects/{project.slug}/assignments").json()
    assert (body["suggestion"], body["suggestion_percent"]) == (("music", 72) if shown else (None, None))


@pytest.mark.parametrize("shown", [True, False])
def test_files_say_what_was_suggested_and_whether_it_was_seen(shown):
    project, _client, _query = suggested(shown=shown)
    person = project.memberships.get(role="annotator").user
    labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
    lines = b"".join(export_labels(project=project, format="csv")).decode()
    (row,) = csv.DictReader(io.StringIO(lines))
    assert tuple(row) == TABLE_COLUMNS
    told = [row[name] for name in ("answer", "suggestion", "suggestion_percent", "suggestion_shown")]
    assert told == ["sport", "music", "72", str(shown)]
    (task,) = json.loads(b"".join(export_labels(project=project, format="label_studio")))
    assert task["meta"]["suggestion_shown"] is shown


def test_managers_read_both_groups_with_intervals_and_annotators_do_not():
    project, client, _query = suggested(shown=True)
    person = project.memberships.get(role="annotator").user
    (blind,) = open_records(project, 1, round_number=2)
    Query.objects.filter(pk=blind.pk).update(suggested=1, suggested_percent=60, suggestion_shown=False)
    for choice in (1, 0):
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)
    address = reverse("annotation:quality", args=[project.slug])
    assert client.get(address).status_code in (403, 404)
    owner, manager = make_user(), Client()
    add_members(project, owner, role="manager")
    manager.force_login(owner)
    page = tight(manager.get(address).content.decode())
    assert "with the suggestion" in page
    assert "answers 100.0 points closer to the model" in page
