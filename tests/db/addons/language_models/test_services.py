import json
import time

import pytest
from django.conf import settings as site
from django.db import IntegrityError, transaction

from addons.language_models import endpoint as endpoints
from addons.language_models import services as answering
from addons.language_models.choices import LanguageModelAnswers
from addons.language_models.endpoint import Endpoint, EndpointFault, ask_model, target_of
from addons.language_models.models import MachineAnnotator
from addons.language_models.selectors import machine_sheet
from annotation.data.services.label_files import export_labels
from annotation.errors import AddressRefused, InvalidConfiguration
from annotation.models import Assignment, AssignmentState, Consensus, Label, Membership, Query, QueryState
from annotation.models.quality import Machine
from annotation.projects.services import configuring
from annotation.questions.services import labels, queue
from annotation.review.selectors import payments_csv
from tests import learning
from tests.db.learner.answers.test_randomization import open_randomized
from tests.factories import make_annotators, make_project, make_user, write_settings
from tests.language_model import LanguageModelServer

pytestmark = pytest.mark.django_db(transaction=True)
CHOSEN = {"machine": "language_model", "machine_endpoint": "ours"}


def text_of(body) -> str:
    return body["messages"][1]["content"].removeprefix("<text>").removesuffix("</text>")


def truthful(body) -> str:
    return learning.CLASSES[learning.truth_of(text_of(body))]


@pytest.fixture
def server(settings, monkeypatch):
    made = LanguageModelServer(truthful)
    settings.LANGUAGE_MODELS = {"ours": (f"http://{made.host}/v1/chat/completions", "small", "sesame")}
    settings.LANGUAGE_MODEL_LOCAL_HOSTS = [made.host]
    monkeypatch.setattr(answering, "FIRST_WAIT_SECONDS", 0.01)
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture
def crowd(server, remembered):
    return remembered("a crowd and a machine", asked_of_a_machine)


def asked_of_a_machine():
    project = open_randomized(**CHOSEN, class_descriptions=["tool: for a carpenter"])
    learning.fill_crowd(project)
    make_annotators(project, 2)
    learning.work_off(project)
    return project


def machine_of(project) -> MachineAnnotator:
    return MachineAnnotator.objects.select_related("machine").get(machine__project=project)


def ready_again(project) -> None:
    MachineAnnotator.objects.filter(machine__project=project).update(next_at=None)


def test_it_answers_each_question_once_by_the_same_door_and_is_sent_gate_output_alone(crowd, server):
    assert answering.answer_some(project_id=crowd.pk) == 8
    assert answering.answer_some(project_id=crowd.pk) == 0
    machine = machine_of(crowd)
    given = Label.objects.filter(annotator=machine.user)
    assert given.count() == len(set(given.values_list("query", flat=True))) == machine.requests == 8
    assert machine.tokens == 56
    # One place of each question is the machine's, the others are left to people: nothing is settled by it alone.
    assert not Consensus.objects.exists()
    assert set(Query.objects.filter(state="open").values_list("open_slots", flat=True)) == {2}
    texts = set(Query.objects.filter(state="open").values_list("text", flat=True))
    assert {text_of(sent["body"]) for sent in server.seen} == texts
    sent = server.seen[0]
    assert (sent["path"], sent["authorization"]) == ("/v1/chat/completions", "Bearer sesame")
    assert set(sent["body"]) == {"model", "messages", "temperature", "max_tokens"}
    whole = json.dumps(server.seen)
    assert "for a carpenter" in whole
    for unsaid in (crowd.name, crowd.slug, machine.user.username, "person ", "count"):
        assert unsaid not in whole
    # Nobody can sign in as it.
    assert not machine.user.is_active
    assert not machine.user.has_usable_password()


def test_people_and_it_settle_a_question_together_and_it_is_marked_everywhere(crowd):
    answering.answer_some(project_id=crowd.pk)
    machine = machine_of(crowd)
    people = [each.user for each in Membership.objects.filter(project=crowd).exclude(user=machine.user)]
    for person in people:
        if not Membership.objects.filter(project=crowd, user=person, role="annotator").exists():
            continue
        while (held := queue.claim_next(project=crowd, user=person)) is not None:
            labels.submit_label(assignment=held, choice=learning.truth_of(held.query.text))
    assert Consensus.objects.count() == 8
    assert set(Consensus.objects.values_list("votes", flat=True)) == {3}
    sheet = machine_sheet(crowd)
    assert (sheet.compared, sheet.agreeing, sheet.endpoint, sheet.most_requests) == (8, 8, "ours", 1000)
    assert 60 < sheet.percent_low < sheet.percent == 100
    rows = [json.loads(line) for line in b"".join(export_labels(project=crowd, format="jsonl")).decode().splitlines()]
    kinds = {(row["annotator"] == machine.user.username, row["annotator_kind"]) for row in rows}
    assert kinds == {(True, "machine"), (False, "person")}
    assert machine.user.username not in "".join(payments_csv(crowd))
    assert not any(text in repr(sheet) for text in Query.objects.values_list("text", flat=True))


def test_what_names_no_class_is_asked_once_more_then_skipped_and_counts_against_nothing(crowd, server):
    said = iter(["weather", "Play music", "I think fruit or tool"] + ["weather"] * 40)
    server.reply = lambda body: next(said)
    assert answering.answer_some(project_id=crowd.pk) == 0
    machine = machine_of(crowd)
    assert (machine.requests, machine.unusable, machine.faults) == (16, 16, 0)
    assert not Label.objects.exists()
    skipped = Assignment.objects.filter(annotator=machine.user)
    assert set(skipped.values_list("state", flat=True)) == {AssignmentState.SKIPPED}
    assert set(Query.objects.filter(round_number=1).values_list("state", "open_slots")) == {(QueryState.OPEN, 3)}
    # One skip of a person is enough here; the machine's does not count beside it.
    write_settings(crowd, skips_to_set_aside=2)
    person = Membership.objects.filter(project=crowd, role="annotator").exclude(user=machine.user).first().user
    held = queue.claim_next(project=crowd, user=person)
    labels.skip_assignment(assignment=held, reason="unclear")
    assert Query.objects.get(pk=held.query_id).state == QueryState.OPEN


def test_a_busy_endpoint_is_asked_again_a_few_times_then_left_alone_for_a_while(crowd, server):
    replies = iter([(429, {}, {"Retry-After": "0"}), (503, {}, {})])
    server.reply = lambda body: next(replies, None) or truthful(body)
    assert answering.answer_some(project_id=crowd.pk) == 8
    assert machine_of(crowd).requests == 10
    learned = Label.objects.count()
    server.reply = lambda body: (429, {}, {})
    again = open_randomized(**CHOSEN)
    learning.fill_crowd(again)
    learning.work_off(again)
    assert answering.answer_some(project_id=again.pk) == 0
    machine = machine_of(again)
    assert (machine.requests, machine.faults, machine.last_fault) == (3, 1, "HTTP 429")
    assert Label.objects.count() == learned
    # The question is free for people, and the machine comes back by itself, later and later.
    assert set(Query.objects.filter(project=again, state="open").values_list("open_slots", flat=True)) == {3}
    first = machine.next_at
    assert answering.answer_some(project_id=again.pk) == 0
    assert machine_of(again).requests == 3
    ready_again(again)
    answering.answer_some(project_id=again.pk)
    later = machine_of(again)
    assert (later.faults, later.requests) == (2, 6)
    assert later.next_at > first
    server.reply = truthful
    ready_again(again)
    assert answering.answer_some(project_id=again.pk) == 8
    assert machine_of(again).faults == 0


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("reply", "words", "requests"),
    [
        ((401, {}, {}), "HTTP 401", 1),
        ((302, {}, {"Location": "http://127.0.0.1:1/"}), "HTTP 302", 1),
        ((200, b"<html>", {}), "the reply is no chat completion", 1),
        ((200, {"choices": []}, {}), "the reply is no chat completion", 1),
        ((200, {"choices": [{"message": {"content": None}}]}, {}), "the reply is no chat completion", 1),
        ((200, b"[" * 70_000, {}), "the reply is too long", 1),
        ((429, {}, {"Retry-After": "3600"}), "HTTP 429", 1),
    ],
)
def test_replies_that_are_none_end_the_run_with_their_kind_alone(crowd, server, reply, words, requests):
    server.reply = lambda body: reply
    assert answering.answer_some(project_id=crowd.pk) == 0
    machine = machine_of(crowd)
    assert (machine.last_fault, machine.requests, machine.leased_until) == (words, requests, None)
    assert not Assignment.objects.filter(annotator=machine.user, state=AssignmentState.LEASED).exists()


def test_a_reply_that_comes_byte_by_byte_is_cut_off(server):
    server.reply = lambda body: (200, b" " * 200, {"X-Slow": "1"})
    endpoint = Endpoint(f"http://{server.host}/", "small")
    began = time.monotonic()
    with pytest.raises(EndpointFault):
        ask_model(endpoint, [], hosts=[], local=[server.host], seconds=1.0)
    assert time.monotonic() - began < 30


def test_the_requests_are_bounded_over_all_runs(crowd, server):
    configuring.configure_project(project=crowd, changes={"machine_requests": 3}, actor=crowd.created_by)
    assert answering.answer_some(project_id=crowd.pk) == 3
    ready_again(crowd)
    assert answering.answer_some(project_id=crowd.pk) == 0
    machine = machine_of(crowd)
    assert (machine.requests, machine.last_fault) == (3, "the requests are used up")
    assert len(server.seen) == 3


def test_one_worker_at_a_time_and_one_machine_a_project(crowd, server):
    answering.start_due()
    machine = answering._machine_of(crowd)
    assert answering._taken(machine) is not None
    assert answering.answer_some(project_id=crowd.pk) == 0
    assert not server.seen
    with pytest.raises(IntegrityError), transaction.atomic():
        Machine.objects.create(project=crowd, user=make_user())


def test_turned_off_it_answers_nothing_more_and_loses_its_role(crowd, server):
    answering.answer_some(project_id=crowd.pk)
    configuring.configure_project(project=crowd, changes={"machine": ""}, actor=crowd.created_by)
    assert answering.answer_some(project_id=crowd.pk) == 0
    answering.start_due()
    machine = machine_of(crowd)
    assert not Membership.objects.filter(user=machine.user).exists()
    assert Label.objects.filter(annotator=machine.user).count() == 8


def test_it_is_refused_where_records_are_shown_where_it_would_be_alone_and_where_nobody_named_it(server):
    with pytest.raises(InvalidConfiguration, match="Language models see only texts that"):
        learning.open_trusted(make_user(), **CHOSEN)
    with pytest.raises(InvalidConfiguration, match="A model never answers alone: ask"):
        open_randomized(**CHOSEN, overlap=1)
    with pytest.raises(InvalidConfiguration, match="No such endpoint is configured on"):
        open_randomized(machine="language_model", machine_endpoint="theirs")
    # Whatever the setting says, a project of records is never asked about.
    assert answering.answer_some(project_id=make_project().pk) == 0


def test_a_site_that_names_none_offers_none(settings):
    settings.LANGUAGE_MODELS = {}
    assert LanguageModelAnswers.missing()
    assert site.LANGUAGE_MODELS == {}


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://models.example/v1", "must begin with https"),
        ("https://elsewhere.example/v1", "has not allowed this host"),
        ("https://localhost/v1", "not public"),
        ("https://user:secret@models.example/v1", "neither a password"),
    ],
)
def test_only_listed_hosts_at_public_addresses_are_asked(url, rule):
    hosts = ["models.example", "localhost"]
    with pytest.raises(AddressRefused, match=rule):
        target_of(Endpoint(url, "m"), hosts=hosts, local=[])


def test_a_key_is_in_no_representation():
    assert "sesame" not in repr(Endpoint("https://a/", "m", "sesame"))
    assert endpoints.MOST_TOKENS == 64
