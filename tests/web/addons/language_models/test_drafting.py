"""Example texts from the button to the words of a project. What the model is sent is the same whatever the records."""

import json
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from addons.language_models import drafting
from addons.language_models.models import LONGEST_DRAFTING, WordsDraft
from annotation.data.services import datasets
from annotation.models import Project, Record
from dpal.features.sentences import MULTILINGUAL, PACKAGES
from learner.features.encoder import MultilingualEncoder
from learner.pools.configuration import words_about_classes
from learner.releases.services.described import described_release
from tests import learning
from tests.clients import browser_of
from tests.factories import make_opener
from tests.language_model import LanguageModelServer
from tests.openings import sent_by
from tests.programs import Program

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage", "reads_here")]
SECRET = "the patient in bed nine"


@pytest.fixture
def server(settings):
    made = LanguageModelServer(lambda body: "it never came\nwhere is it")
    settings.LANGUAGE_MODELS = {"ours": (f"http://{made.host}/v1/chat/completions", "small", "sesame")}
    settings.LANGUAGE_MODEL_LOCAL_HOSTS = [made.host]
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture
def opener():
    return make_opener("opener")


@pytest.fixture
def client(opener):
    return browser_of(opener)


def written(**options) -> WordsDraft:
    drafting.write_draft(draft_id=str(WordsDraft.objects.get(ended_at=None).pk))
    return WordsDraft.objects.get(**options)


def test_examples_are_drafted_edited_and_stored_before_a_project_is_opened(client, server):
    pool = SimpleUploadedFile("pool.csv", f"text\n{SECRET}\nanother row\n".encode())
    public = SimpleUploadedFile("public.csv", b"text,label\n" + b"money back,refund\nlate,delivery\n" * 10)
    address = client.post(reverse("annotation:new_project"), {"pool": pool, "public": public})["Location"]
    page = client.get(address)
    assert "Draft examples with ours" in page.content.decode()
    draft_id = page.context["draft"].pk
    sent = sent_by(page) | {"endpoint": "ours", "examples": "2", "guidelines": SECRET}
    to = client.post(reverse("language_models:draft_for_opening", args=[draft_id]), sent)
    assert "small is writing" in client.get(to["Location"]).content.decode()
    draft = written()
    assert draft.lines == [
        f'{name}: "{text}"' for name in ("delivery", "refund") for text in ("it never came", "where is it")
    ]
    assert SECRET not in str(server.seen)
    edited = client.post(to["Location"], {"lines": 'delivery: "it never came"\nrefund: "I want my money"'})
    assert edited["Location"] == address
    page = client.get(address)
    assert page.context["form"].data["words_source"] == "drafted by small, edited by opener"
    assert client.post(address, sent_by(page) | {"open": "1"}).status_code == 302
    project = Project.objects.get()
    assert project.settings["class_descriptions"] == ['delivery: "it never came"', 'refund: "I want my money"']
    assert project.settings["words_source"] == "drafted by small, edited by opener"
    assert not WordsDraft.objects.exists()


def test_no_record_count_or_answer_reaches_the_model(manager, server):
    """A worker reads one row, which was written from settings alone, so requests are the same with other records."""
    requests = []
    for tables in (0, 1):
        project = learning.open_trusted(manager)
        if tables:
            learning.fill_trusted(project)
            assert Record.objects.filter(dataset__project=project).exists()
        asked = browser_of(manager).post(
            reverse("language_models:draft_for_project", args=[project.slug]), {"endpoint": "ours", "examples": "2"}
        )
        assert asked.status_code == 302
        with CaptureQueriesContext(connection) as captured:
            written(project=project)
        read = {sql for query in captured for sql in [query["sql"]] if "FROM" in sql.upper()}
        assert all('"language_models_wordsdraft"' in sql for sql in read)
        assert not any("annotation_record" in query["sql"] or "annotation_label" in query["sql"] for query in captured)
        requests.append(server.seen[:])
        server.seen.clear()
    assert requests[0] == requests[1] != []


def test_a_program_drafts_and_stores_words(manager, server):
    project = learning.open_trusted(manager)
    ask = Program(manager, project)
    assert ask("POST", "words-drafts", {"endpoint": "theirs"}).status_code == 409
    asked = ask("POST", "words-drafts", {"endpoint": "ours", "examples": 2})
    assert (asked.status_code, asked.json()["state"]) == (202, "waiting")
    assert ask("POST", "words-drafts", {"endpoint": "ours"}).status_code == 409
    written()
    found = ask("GET", f"words-drafts/{asked.json()['draft']}").json()
    assert (found["state"], found["model"], len(found["lines"])) == ("written", "small", 2 * len(project.classes))


def test_accepted_drafts_join_the_words_of_a_project(manager, server):
    project = learning.open_trusted(manager, class_descriptions=["tool: for a carpenter"], words_source="by hand")
    browser = browser_of(manager)
    assert "Draft examples" in browser.get(reverse("annotation:settings", args=[project.slug])).content.decode()
    asked = browser.post(
        reverse("language_models:draft_for_project", args=[project.slug]), {"endpoint": "ours", "examples": "1"}
    )
    draft = written()
    assert browser.post(asked["Location"], {"lines": "unknown: words"}).status_code == 422
    browser.post(asked["Location"], {"lines": draft.lines_text})
    project.refresh_from_db()
    assert project.settings["words_source"] == "by hand; drafted by small, accepted by manager"
    assert len(words_about_classes(project)) == len(project.classes)


def test_a_model_that_is_away_is_told_and_another_try_is_possible(manager, server):
    project = learning.open_trusted(manager)
    browser = browser_of(manager)
    page = reverse("language_models:draft_for_project", args=[project.slug])
    server.reply = lambda body: (503, {}, {})
    asked = browser.post(page, {"endpoint": "ours", "examples": "1"})
    assert written().fault == "HTTP 503"
    assert "small wrote no examples: HTTP 503" in browser.get(asked["Location"]).content.decode()
    assert browser.post(page, {"endpoint": "ours", "examples": "51"}).status_code == 422
    browser.post(page, {"endpoint": "ours", "examples": "1"})
    WordsDraft.objects.filter(ended_at=None).update(created_at=timezone.now() - LONGEST_DRAFTING - timedelta(seconds=1))
    overdue = WordsDraft.objects.get(ended_at=None)
    assert "took too long" in browser.get(reverse("language_models:words_draft", args=[overdue.pk])).content.decode()
    assert browser.post(page, {"endpoint": "ours", "examples": "1"}).status_code == 302


def test_somebody_elses_draft_does_not_exist(manager, server, opener):
    project = learning.open_trusted(manager)
    browser_of(manager).post(
        reverse("language_models:draft_for_project", args=[project.slug]), {"endpoint": "ours", "examples": "1"}
    )
    address = reverse("language_models:words_draft", args=[WordsDraft.objects.get().pk])
    assert browser_of(opener).get(address).status_code == 404


def test_examples_come_from_the_public_file_or_from_a_table(client):
    """What is taken measures no model any more; a person may still edit it."""
    pool = SimpleUploadedFile("pool.csv", f"text\n{SECRET}\nanother row\n".encode())
    rows = "".join(f"money back {n},refund\nvery late {n},delivery\n" for n in range(20))
    public = SimpleUploadedFile("public.csv", f"text,label\n{rows}".encode())
    address = client.post(reverse("annotation:new_project"), {"pool": pool, "public": public})["Location"]
    client.post(address, sent_by(client.get(address)) | {"take_examples": "1"})
    typed = client.get(address).context["form"].data
    assert typed["words_source"] == "taken from public.csv"
    lines = typed["class_descriptions"].splitlines()
    assert len(lines) == 20
    assert lines[:2] == ['refund: "money back 0"', 'delivery: "very late 0"']
    table = SimpleUploadedFile("words.csv", b'class,example\nrefund,"give it back, all of it"\n')
    client.post(address, sent_by(client.get(address)) | {"words_file": table})
    assert client.get(address).context["form"].data["class_descriptions"].splitlines()[20:] == [
        'refund: "give it back, all of it"'
    ]
    wrong = SimpleUploadedFile("words.csv", b"class,example\nrefund,\xff\xff\n")
    refused = client.post(address, sent_by(client.get(address)) | {"words_file": wrong})
    assert "not written in UTF-8" in refused.content.decode()
    assert client.post(address, sent_by(client.get(address)) | {"open": "1"}).status_code == 302
    project = Project.objects.get()
    for dataset in project.datasets.order_by("-pk"):
        datasets.import_dataset(job_id=dataset.job_id)
    (score,) = described_release(project).scores
    assert score.examples == 20


def opening_of(client, sentence, **files):
    files["pool"] = SimpleUploadedFile("pool.csv", f"text\n{sentence}\n".encode() * 9)
    page = client.get(client.post(reverse("annotation:new_project"), files)["Location"])
    note = page.content.decode().partition('id="other-language"')[2].partition("</p>")[0]
    return page.context["form"].data["features"], " ".join(note.split())


GERMAN = "das ist nicht der Zug und ich warte"


@pytest.mark.skipif(bool(MultilingualEncoder.missing()), reason=MultilingualEncoder.missing())
def test_texts_are_read_by_the_encoder_that_knows_their_language(client):
    features, note = opening_of(client, GERMAN)
    assert features == "multilingual"
    assert "Language: German. The text encoder, chosen under Advanced, knows it." in note
    spans = [{"text": GERMAN, "spans": [{"start": 16, "end": 23, "label": "thing"}]}] * 9
    public = SimpleUploadedFile("public.jsonl", "\n".join(map(json.dumps, spans)).encode())
    features, note = opening_of(client, GERMAN, public=public)
    assert features != "multilingual"
    assert "knows English only" in note


def test_a_language_that_the_encoder_does_not_know_is_told(client, monkeypatch):
    monkeypatch.setitem(PACKAGES, MULTILINGUAL, "not_installed")
    features, note = opening_of(client, GERMAN)
    assert features != "multilingual"
    assert "knows English only" in note
    assert "The extra multilingual, which this site lacks, has one that knows it: docs/operations.md." in note
    features, note = opening_of(client, "this is not the train and I wait for you")
    assert features != "multilingual"
    assert note == ""
