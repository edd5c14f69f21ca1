import numpy as np
import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.data.services.forgetting import empty_records
from annotation.models import Label, Membership, Picture, Query, QueryState, Record, Report, Role
from annotation.models.history import Action
from annotation.questions.services import correcting, flags, labels, queue
from annotation.review import selectors as browsing
from annotation.review import services as decisions
from annotation.review.forms import QuestionFilter
from tests.clients import browser_of
from tests.factories import add_members, make_annotators, make_candidates, make_project, make_records, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def project():
    return make_project(overlap=2)


@pytest.fixture
def manager(project):
    person = make_user("manager")
    add_members(project, person, role=Role.MANAGER)
    return person


@pytest.fixture
def asked(project, people):
    texts = ["a red apple", "a green pear", "a blue plum", "a lost drill", "a 100% saw"]
    records = make_records(project, texts)
    queue.open_queries(project=project, round_number=3, record_ids=[record.pk for record in records])
    ids = list(Query.objects.order_by("priority").values_list("pk", flat=True))
    first, second = people
    for person, choices in ((first, (0, 0, 2)), (second, (0, 1))):
        for choice in choices:
            labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)
    held = queue.claim_next(project=project, user=first)
    assert held.query_id == ids[3]
    flags.comment_on(assignment=held, comment="what is this?")
    return ids


def page(project):
    return reverse("annotation:questions", args=[project.slug])


def found(client, project, **chosen):
    return [row.query.pk for row in client.get(page(project), chosen).context["rows"]]


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, [4, 3, 2, 1, 0]),
        ({"state": "closed"}, [0]),
        ({"state": "disputed"}, [1]),
        ({"state": "open"}, [4, 3, 2]),
        ({"choice": 2}, [2]),
        ({"choice": 0}, [1, 0]),
        ({"agreement": "all"}, [0]),
        ({"agreement": "divided"}, [1]),
        ({"round_number": 3}, [4, 3, 2, 1, 0]),
        ({"round_number": 4}, []),
        ({"flag": "any"}, [3]),
        ({"flag": "comment"}, [3]),
        ({"flag": "sensitive"}, []),
        ({"flag": "talk"}, [3]),
        ({"age": "new7"}, [2, 1, 0]),
        # What was opened just now waits for nobody yet.
        ({"age": "old7"}, []),
        ({"state": "open", "choice": 2}, [2]),
        # What cannot be read narrows nothing.
        ({"state": "gold", "choice": "x", "round_number": "-1", "age": "?"}, [4, 3, 2, 1, 0]),
    ],
)
def test_filters(project, manager, asked, chosen, expected):
    assert found(browser_of(manager), project, **chosen) == [asked[place] for place in expected]


def test_by_an_annotator_who_has_left(project, manager, people, asked):
    stranger = make_user("stranger")
    Membership.objects.get(project=project, user=people[1]).delete()
    client = browser_of(manager)
    assert found(client, project, annotator=people[1].pk) == [asked[1], asked[0]]
    form = QuestionFilter({}, project=project, readable=False)
    by, waits_for = form.fields["annotator"].choices, form.fields["assigned"].choices
    assert (people[1].pk, f"{people[1].get_username()} (has left)") in by
    assert stranger.pk not in dict(by)
    # Nothing waits for who is not here.
    assert people[1].pk not in dict(waits_for)


class TestWhatManagersRead:
    def test_without_the_records_no_text_is_shown_or_searched(self, project, manager, asked):
        client = browser_of(manager)
        content = client.get(page(project), {"text": "apple"}).content.decode()
        assert "apple" not in content.replace('value="apple"', "")
        assert found(client, project, text="apple") == found(client, project, text="nothing") == asked[::-1]
        one = client.get(reverse("annotation:question", args=[project.slug, asked[0]])).content.decode()
        assert "apple" not in one

    def test_who_is_asked_about_records_reads_and_searches_them(self, project, manager, asked):
        add_members(project, manager)
        client = browser_of(manager)
        assert found(client, project, text="APPLE") == [asked[0]]
        assert found(client, project, text="100%") == [asked[4]]
        assert found(client, project, text="%%%") == []
        assert "a red apple" in client.get(page(project)).content.decode()

    def test_gate_output_is_for_every_manager(self):
        project = make_project(oracle="crowd")
        manager = make_user()
        add_members(project, manager, role=Role.MANAGER)
        candidates = make_candidates(project, ["play jazz", "play rock", "never asked"])
        queue.open_queries(project=project, round_number=1, query_ids=[one.pk for one in candidates[:2]])
        client = browser_of(manager)
        content = client.get(page(project)).content.decode()
        assert "play jazz" in content
        assert "never asked" not in content
        assert "Send back" not in content
        assert found(client, project, text="rock") == [candidates[1].pk]

    def test_an_image_is_for_who_is_asked_about_records(self, own_storage):
        np.save(own_storage / "pixels.npy", np.zeros((1, 4, 5), dtype=np.uint8))
        project = make_project(data_kind="image", image_height=4, image_width=5)
        (record,) = make_records(project, rows=1, pixels="pixels.npy")
        Picture.objects.create(record=record, width=60, height=40, content=b"as kept")
        queue.open_queries(project=project, round_number=1, record_ids=[record.pk])
        query = Query.objects.get()
        sees, only_manages = make_user("sees"), make_user("manages")
        add_members(project, sees, only_manages, role=Role.MANAGER)
        add_members(project, sees, role=Role.ANNOTATOR)
        one = [reverse(f"annotation:{name}", args=[project.slug, query.pk]) for name in ("question", "asked_image")]
        shown, image = (browser_of(sees).get(address) for address in one)
        assert one[1] in shown.content.decode()
        assert "60 by 40 pixels" in shown.content.decode()
        assert (image["Content-Type"], image.content) == ("image/webp", b"as kept")
        assert {"no-store", "private"} <= set(image["Cache-Control"].split(", "))
        (row,) = browsing.questions(project, browsing.WantedQuestions(), readable=True).rows
        assert row.shown.image_url == one[1]
        hidden, refused = (browser_of(only_manages).get(address) for address in one)
        assert one[1] not in hidden.content.decode()
        assert refused.status_code == 404
        with transaction.atomic():
            empty_records(Record.objects.filter(pk=record.pk), project=project)
        assert browser_of(sees).get(one[1]).status_code == 404
        assert one[1] not in browser_of(sees).get(one[0]).content.decode()

    def test_hidden_checks_are_not_among_them(self, project, manager, asked):
        Query.objects.filter(pk=asked[4]).update(state=QueryState.GOLD)
        client = browser_of(manager)
        assert asked[4] not in found(client, project)
        assert client.get(reverse("annotation:question", args=[project.slug, asked[4]])).status_code == 404


def test_pages_follow_by_key_and_the_number_of_statements_does_not_grow(manager):
    project = make_project()
    add_members(project, manager, role=Role.MANAGER)
    (person,) = make_annotators(project, 1)
    records = make_records(project, [f"record {number}" for number in range(120)])
    queue.open_queries(project=project, round_number=1, record_ids=[record.pk for record in records])
    client = browser_of(manager)
    client.get(page(project))
    with CaptureQueriesContext(connection) as few:
        first = client.get(page(project))
    for _ in range(60):
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
    with CaptureQueriesContext(connection) as many:
        first = client.get(page(project))
    assert len(many) <= len(few) <= 20, [one["sql"] for one in many]
    pages, seen = 1, [row.query.pk for row in first.context["rows"]]
    older = first.context["older"]
    while older:
        following = client.get(f"{page(project)}?{older}")
        seen += [row.query.pk for row in following.context["rows"]]
        older, pages = following.context["older"], pages + 1
    assert (pages, len(seen), len(set(seen))) == (3, 120, 120)
    assert seen == sorted(seen, reverse=True)
    with CaptureQueriesContext(connection) as paged:
        browsing.questions(project, browsing.WantedQuestions(), readable=False, before=seen[40])
    assert len(paged) == 4
    assert not any("count(" in one["sql"].lower() for one in paged)


class TestAtOnce:
    def test_chosen_questions_are_sent_back_and_noted(self, project, manager, people, asked):
        client = browser_of(manager)
        sent = {"question": [asked[0], asked[4]], "action": "send_back", "comment": "really?", "view": "state=closed"}
        response = client.post(reverse("annotation:change_questions", args=[project.slug]), sent)
        assert response["Location"].endswith("?state=closed")
        assert Report.objects.filter(query=asked[0], kind="returned", comment="really?").count() == 2
        assert Action.objects.get(route="question:send_back").target == {"query_id": asked[0]}
        history = client.get(reverse("annotation:question", args=[project.slug, asked[0]]))
        kinds = [event.kind for event, _words in history.context["events"]]
        assert kinds[:3] == ["answered", "answered", "agreed"]
        assert sorted(kinds[3:]) == ["action", "returned", "returned"]
        # In the words of the log, not by the name of a route.
        assert "Question: sent back" in history.content.decode()
        assert "question:send_back" not in history.content.decode()

    def test_chosen_questions_are_set_aside(self, project, manager, asked):
        client = browser_of(manager)
        sent = {"question": [asked[0], asked[4]], "action": "set_aside"}
        client.post(reverse("annotation:change_questions", args=[project.slug]), sent)
        assert Query.objects.get(pk=asked[4]).state == QueryState.SET_ASIDE
        assert Query.objects.get(pk=asked[0]).state == QueryState.CLOSED

    @pytest.mark.parametrize("sent", [{}, {"question": "x", "action": "set_aside"}, {"question": 1, "action": "drop"}])
    def test_what_cannot_be_read_does_nothing(self, project, manager, asked, sent):
        client = browser_of(manager)
        response = client.post(reverse("annotation:change_questions", args=[project.slug]), sent, follow=True)
        assert "Tick the questions first." in response.content.decode()
        assert not Query.objects.filter(state=QueryState.SET_ASIDE).exists()


@pytest.mark.django_db(transaction=True)
class TestHistory:
    def test_answers_changes_skips_reports_and_decisions_stand_in_their_order(self, project, manager, people, asked):
        """The second question is divided; the third is answered anew; the fourth is skipped after a comment."""
        correcting.correct_answer(project=project, user=people[0], query_id=asked[2], choice=1)
        held = queue.claim_next(project=project, user=people[0])
        labels.skip_assignment(assignment=held, reason="unclear")
        decisions.claim_review(project=project, person=manager)
        decisions.settle_reviewed(project=project, person=manager, query_id=asked[1], choice=1)
        client, first, second = browser_of(manager), *(person.get_username() for person in people)

        def happened(query_id):
            found = client.get(reverse("annotation:question", args=[project.slug, query_id])).context["events"]
            return [(event.who, str(words), event.value) for event, words in found]

        assert happened(asked[2]) == [(first, "answered", "other"), (first, "answered anew", "music")]
        assert happened(held.query_id) == [(first, "commented", ""), (first, "skipped", "unclear")]
        assert happened(asked[1]) == [
            (first, "answered", "sport"),
            (second, "answered", "music"),
            ("manager", "agreed on", "music"),
        ]


def change(client, project, *ids, **sent):
    return client.post(reverse("annotation:change_questions", args=[project.slug]), {"question": ids, **sent})


class TestAssigning:
    def test_what_is_assigned_is_asked_first(self, project, manager, people, asked):
        client = browser_of(manager)
        third = make_annotators(project, 1)[0]
        change(client, project, asked[4], action="assign", person=third.pk)
        assert found(client, project, assigned=third.pk) == [asked[4]]
        assert f"for {third.get_username()}" in client.get(page(project)).content.decode()
        assert queue.claim_next(project=project, user=third).query_id == asked[4]
        assert found(client, project, assigned=third.pk) == []

    def test_only_somebody_who_may_answer(self, project, manager, people, asked):
        client = browser_of(manager)
        told = change(client, project, asked[4], action="assign", person=manager.pk)
        assert "Choose the annotator first." in client.get(told["Location"]).content.decode()
        assert not Query.objects.filter(assigned_to__isnull=False).exists()

    def test_a_crowd_is_told_the_rule_instead(self):
        project = make_project(oracle="crowd")
        manager = make_user()
        add_members(project, manager, role=Role.MANAGER)
        (one,) = make_candidates(project, ["play jazz"])
        queue.open_queries(project=project, round_number=1, query_ids=[one.pk])
        client = browser_of(manager)
        content = client.get(page(project)).content.decode()
        assert "assignment must not depend on answers" in content
        assert 'name="person"' not in content
        (stranger,) = make_annotators(project, 1)
        assert change(client, project, one.pk, action="assign", person=stranger.pk).status_code == 422


class TestOwnAnswers:
    def mine(self, project):
        return reverse("annotation:own_answers", args=[project.slug])

    def test_ones_own_alone_newest_first_to_be_changed(self, project, people, asked):
        client = browser_of(people[1])
        shown = client.get(self.mine(project)).context["page"].answers
        assert [(one.label.query_id, one.name, one.may_change) for one in shown] == [
            (asked[1], "music", True),
            (asked[0], "sport", True),
        ]
        assert [one.question.text for one in shown] == ["a green pear", "a red apple"]
        change = reverse("annotation:correct_answer", args=[project.slug, asked[1]])
        assert client.post(change, {"choice": 0})["Location"] == self.mine(project)
        assert Label.objects.get(annotator=people[1], query=asked[1], superseded_at=None).choice == 0
        assert client.post(change, {"choice": 7}).status_code == 302
        assert Label.objects.get(annotator=people[1], query=asked[1], superseded_at=None).choice == 0

    def test_what_came_back_is_told_on_the_label_page_with_its_comment(self, project, manager, people, asked):
        sent = {"question": asked[0], "action": "send_back", "comment": "is it red?"}
        browser_of(manager).post(reverse("annotation:change_questions", args=[project.slug]), sent)
        client = browser_of(people[0])
        label_page = client.get(reverse("annotation:label", args=[project.slug])).content.decode()
        assert "1 comment of a manager is unread" in label_page
        (one,) = client.get(self.mine(project), {"only": "unread"}).context["page"].answers
        assert (one.query_id, one.is_unread, [said.comment for said in one.said]) == (asked[0], True, ["is it red?"])
        change = reverse("annotation:correct_answer", args=[project.slug, asked[0]])
        assert client.post(change, {"choice": 0, "only": "unread"})["Location"].endswith("?only=unread")
        assert not client.get(self.mine(project), {"only": "unread"}).context["page"].answers
        assert "is unread" not in client.get(reverse("annotation:label", args=[project.slug])).content.decode()

    def test_a_question_set_aside_is_shown_to_nobody_any_more(self, project, people, asked):
        Query.objects.filter(pk=asked[0]).update(state=QueryState.SET_ASIDE)
        content = browser_of(people[1]).get(self.mine(project)).content.decode()
        assert "a red apple" not in content

    def test_statements_do_not_grow_with_the_answers(self):
        project = make_project()
        (person,) = make_annotators(project, 1)
        records = make_records(project, [f"record {number}" for number in range(30)])
        queue.open_queries(project=project, round_number=1, record_ids=[record.pk for record in records])
        client = browser_of(person)
        numbers = []
        for answers in (2, 23):
            for _ in range(answers):
                labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
            with CaptureQueriesContext(connection) as statements:
                shown = client.get(self.mine(project)).context["page"]
            numbers.append(len(statements))
        assert numbers[0] == numbers[1] <= 12
        assert len(shown.answers) == 20
        rest = client.get(self.mine(project), {"before": shown.before}).context["page"]
        assert (len(rest.answers), rest.before) == (5, None)
