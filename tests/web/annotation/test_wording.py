import json
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone, translation

from annotation.budget.words import delta_words, epsilon_left_words, epsilon_words
from annotation.errors import InvalidChoice, InvalidConfiguration
from annotation.models import Job, Role
from annotation.templatetags.privacy_numbers import unbroken
from annotation.wording import localized
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from dpal.reading.cells import EMPTY, TOO_LONG
from dpal.reading.rows import BadRow, BadRowReport
from dpal_site.api import refused
from dpal_site.middleware import RefusalMiddleware
from privacy.wording import as_message, as_plural_message, joined_messages, joined_rules
from tests.factories import add_members, make_project, make_records, make_user

pytestmark = pytest.mark.django_db


def bad_rows(number: int) -> BadRowReport:
    return BadRowReport(number, [BadRow(7, "label", EMPTY)])


def still_open(number: int) -> str:
    return as_plural_message(
        "Answers are kept; {n} question is open.", "Answers are kept; {n} questions are open.", n=number
    )


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            as_message("Must be at least {bound:g}, got {got}.", bound=1, got=0),
            "Muss mindestens 1 sein, angegeben ist 0.",
        ),
        (as_message("file: is larger than {most:,} bytes", most=2_000_000), "Datei: ist größer als 2.000.000 Bytes"),
        (
            as_message("One release costs delta {delta:g}, more than the limit.", delta=0.5),
            "Eine Version kostet Delta 0,5",
        ),
        (
            as_message("Nothing was stored: {reason}.", reason=bad_rows(1234).sentence()),
            "Nichts wurde gespeichert: 1.234 fehlerhafte Zeilen; die erste ist Zeile 7, Spalte label: ist leer.",
        ),
        (
            joined_messages(" ", [still_open(3), as_message("A manager can raise its limit.")]),
            "Die Antworten bleiben erhalten; 3 Fragen sind offen. Die Leitung kann die Grenze anheben.",
        ),
        (
            as_message(
                "No such gate: {reason}.",
                reason=as_message("Must be at most {bound:g}, got {got}.", bound=0.5, got=1.5),
            ),
            "So eine Schleuse gibt es nicht: Darf höchstens 0,5 sein, angegeben ist 1,5",
        ),
        (
            joined_messages(
                " ",
                [
                    as_message(
                        "The budget {word} has {left} left, too little for {reason}.",
                        word=as_message("{project} pool", project="messages"),
                        left="epsilon=8",
                        reason="the next questions and the model trained on them",
                    ),
                    "Answers are kept.",
                    "A manager can raise its limit.",
                ],
            ),
            "Das Budget messages: Pool hat noch epsilon=8, zu wenig für die nächsten Fragen und das damit trainierte "
            "Modell. Die Antworten bleiben erhalten. Die Leitung kann die Grenze anheben.",
        ),
        (
            as_message("Nothing was stored: {reason}.", reason="nobody knows why. Nor who"),
            "Nichts wurde gespeichert: nobody knows why. Nor who.",
        ),
        ("words nobody said", "words nobody said"),
        ("", ""),
    ],
)
def test_values_come_along_in_the_signs_of_the_language(said, expected):
    with translation.override("de"):
        assert localized(said).startswith(expected)
    with translation.override("en"):
        assert localized(said) == said


def test_amounts_have_the_decimal_mark_of_the_page():
    """A German reads 10.000 as ten thousand."""
    with translation.override("de"):
        assert (epsilon_words(10), delta_words(1.5e-5)) == ("10,000", "1,5e-5")
    with translation.override("en"):
        assert (epsilon_words(10), delta_words(1.5e-5)) == ("10.000", "1.5e-5")


def test_a_number_with_a_hyphen_stays_on_one_line_and_is_copied_as_it_is():
    assert unbroken(delta_words(5e-6)) == '<span class="whole">5.0e-6</span>'
    assert unbroken("<b> e-6") == '<span class="whole">&lt;b&gt; e-6</span>'
    assert (unbroken(delta_words(0)), unbroken(delta_words(None))) == ("0", "–")


def test_what_is_spent_is_rounded_up_and_what_is_left_down():
    with translation.override("en"):
        assert (epsilon_words(6.3285), epsilon_left_words(13.6715)) == ("6.329", "13.671")
        assert (epsilon_words(0.3), epsilon_left_words(0.1 + 0.2)) == ("0.300", "0.300")
        assert epsilon_left_words(None) == "–"


def test_a_name_that_is_a_word_of_the_site_stays_a_name():
    """Only what was said is translated: a column may well be called like a button."""
    with translation.override("de"):
        assert translation.gettext("Skip") != "Skip"
        assert localized(
            as_message("{role}: the file has no column named {name!r}", role="text", name="Skip")
        ).endswith("'Skip'")


def test_a_moment_is_the_viewers():
    said = as_message(
        "Block {block} closes at {closes_at} and ", block=1, closes_at=datetime(2026, 3, 1, 12, tzinfo=UTC)
    )
    assert said == "Block 1 closes at 2026-03-01 12:00 UTC and "
    with timezone.override(UTC), translation.override("de"):
        assert "01.03.2026 12:00" in localized(said)


def test_a_refusal_is_told_on_a_page_and_stays_english_for_a_program():
    refusal = InvalidChoice(as_message("There are {possible} answers to choose from.", possible=2))
    request = RequestFactory().get("/")
    request.user = AnonymousUser()
    with translation.override("de"):
        page = RefusalMiddleware(lambda _request: HttpResponse()).process_exception(request, refusal)
        problem = json.loads(refused(request, refusal).content)
    assert page is not None
    assert page.status_code == problem["status"] == 422
    assert "Zur Wahl stehen 2 Antworten." in page.content.decode()
    assert problem["detail"] == "There are 2 answers to choose from."
    assert (problem["code"], problem["parameters"]) == ("There are {possible} answers to choose from.", {"possible": 2})


def test_a_program_gets_several_sentences_one_by_one():
    broken = {"a": as_message("Must be at least {bound:g}, got {got}.", bound=1, got=0), "b": "Is missing."}
    problem = json.loads(refused(RequestFactory().get("/"), InvalidConfiguration(joined_rules(broken))).content)
    assert problem["detail"] == "a: Must be at least 1, got 0.; b: Is missing."
    assert (problem["separator"], "code" in problem) == ("; ", False)
    assert [part["parameters"]["reason"]["code"] for part in problem["messages"]] == [
        "Must be at least {bound:g}, got {got}.",
        "Is missing.",
    ]


def test_a_program_gets_what_was_stored_as_code_and_parameters():
    manager = make_user()
    project = make_project(owner=manager)
    add_members(project, manager, role=Role.MANAGER)
    dataset = make_records(project, ["a text"])[0].dataset
    dataset.bad_row_report = [{"line": 3, "column": "text", "reason": TOO_LONG}]
    dataset.save()
    stored = as_plural_message("{n:,} row stored", "{n:,} rows stored", n=1234)
    Job.objects.filter(pk=dataset.job_id).update(message=stored, error="")
    _, secret = tokens.create_token(user=manager, name="a", scopes=[Scope.DATASETS_WRITE], lifetime=timedelta(days=1))
    headers = {"Authorization": f"Bearer {secret}"}
    answer = Client().get(f"/api/v1/jobs/{dataset.job_id}", headers=headers).json()
    assert (answer["message"], answer["error"], answer["error_as_code"]) == ("1,234 rows stored", "", None)
    known = {name: value for name, value in answer["message_as_code"].items() if value is not None}
    assert known == stored.as_json()
    assert known == {"code": "{n:,} row stored", "plural": "{n:,} rows stored", "parameters": {"n": 1234}}
    [found] = Client().get(f"/api/v1/projects/{project.slug}/datasets", headers=headers).json()
    [row] = found["bad_rows"]
    assert (row["reason"], row["reason_as_code"]["parameters"]) == (TOO_LONG, {"most": 20_000})
