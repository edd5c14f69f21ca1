"""Drafts of examples. No test here may open the database, so neither does the command: no record can reach a model."""

import csv
import inspect
import io

import pytest
from django.core.management import CommandError, call_command

from addons.language_models.drafts import draft_examples, examples_in
from tests.language_model import LanguageModelServer

ASKED = ("ours", "refund", "delivery", "--question", "What is it about?", "--examples", "2")


@pytest.fixture
def server(settings):
    made = LanguageModelServer(lambda body: '1. "where is my, parcel"\n- it never came\n\n* it never came\n4) too late')
    settings.LANGUAGE_MODELS = {"ours": (f"http://{made.host}/v1/chat/completions", "small", "sesame")}
    settings.LANGUAGE_MODEL_LOCAL_HOSTS = [made.host]
    yield made
    made.shutdown()
    made.server_close()


def drafted(*arguments: str) -> list[list[str]]:
    out, notes = io.StringIO(), io.StringIO()
    call_command("draft_words", *arguments, stdout=out, stderr=notes)
    assert 'dpal words PROJECT FILE --source "drafted by small, edited by' in notes.getvalue()
    return list(csv.reader(io.StringIO(out.getvalue())))


def test_examples_are_a_table_for_a_person_to_edit(server):
    texts = ["where is my, parcel", "it never came"]
    rows = [[name, text] for name in ("refund", "delivery") for text in texts]
    assert drafted(*ASKED) == [["class", "example"], *rows]


def test_the_model_is_shown_names_question_and_guidelines_and_nothing_else(server, tmp_path):
    """What is sent is the same for any records there may be: the database is closed, and no argument holds one."""
    guidelines = tmp_path / "guidelines.txt"
    guidelines.write_text("Late parcels are deliveries.")
    drafted(*ASKED, "--guidelines", str(guidelines))
    for request, name in zip(server.seen, ("refund", "delivery"), strict=True):
        assert request["authorization"] == "Bearer sesame"
        assert set(request["body"]) == {"model", "messages", "temperature", "max_tokens"}
        system, wanted = (message["content"] for message in request["body"]["messages"])
        assert system.splitlines()[1:4] == [
            "They are sorted by this question: What is it about?",
            "The classes are: refund, delivery.",
            "Guidelines: Late parcels are deliveries.",
        ]
        assert wanted == f"Write 2 examples of the class {name}."
    given = set(inspect.signature(draft_examples).parameters)
    assert given == {"endpoint", "classes", "question", "guidelines", "examples", "hosts", "local", "seconds", "ends"}


def test_a_model_that_is_away_is_one_sentence(server):
    server.reply = lambda body: (503, {}, {})
    with pytest.raises(CommandError, match="HTTP 503"):
        call_command("draft_words", *ASKED)
    with pytest.raises(CommandError, match="--examples must be from 1 to 50"):
        call_command("draft_words", *ASKED[:-1], "51")


def test_a_long_line_is_no_example():
    assert examples_in(f"short\n{'long ' * 90}\n«in marks»") == ["short", "in marks"]
