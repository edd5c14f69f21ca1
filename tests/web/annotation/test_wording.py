"""What services say of values, as a German reader's pages tell it."""

import json
from datetime import UTC

import pytest
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone, translation

from annotation.amounts import delta_words, epsilon_left_words, epsilon_words
from annotation.errors import InvalidChoice
from annotation.models import DatasetState, Job, Role, WorkState
from annotation.presets import PRESETS
from annotation.wording import told
from dpal_site.api import refused
from dpal_site.middleware import RefusalMiddleware
from privacy.accounting.cost import no_proof
from privacy.accounting.events import OutputPerturbationEvent
from privacy.wording import say
from tests.factories import add_members, make_project, make_records, make_user

pytestmark = pytest.mark.django_db
GERMAN = {"HTTP_ACCEPT_LANGUAGE": "de"}


def client_of(user: User) -> Client:
    client = Client(**GERMAN)
    client.force_login(user)
    return client


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (say("Must be at least 1, got {got}.", got=0), "Muss mindestens 1 sein, angegeben ist 0."),
        (say("file: is larger than {most:,} bytes", most=2_000_000), "Datei: ist größer als 2.000.000 Bytes"),
        (say("One release costs delta {delta:g}, more than the limit.", delta=0.5), "Eine Version kostet Delta 0,5"),
        (
            "Nothing was stored: 1,234 bad rows; the first is line 7, column label: is empty.",
            "Nichts wurde gespeichert: 1.234 fehlerhafte Zeilen; die erste ist Zeile 7, Spalte label: ist leer.",
        ),
        (
            "Answers are kept, and 3 questions are open. A manager can raise its limit.",
            "Die Antworten bleiben erhalten, und 3 Fragen sind offen. Ein Verwalter kann die Grenze anheben.",
        ),
        (
            OutputPerturbationEvent(
                regularization=0.1, noise_scale=0.25, dimension=5, gradient_tolerance=0.0, noise="k_norm"
            ).summary(),
            "gestörte Ausgabe von einem Modell mit K-Norm-Rauschen der Skala 0,25",
        ),
        (
            say("No gate has these numbers: {reason}.", reason="sampling_rate must lie in (0, 1], got 1.5"),
            "Kein Gate hat diese Zahlen: sampling_rate muss in (0, 1] liegen, angegeben ist 1,5",
        ),
        (
            str(
                no_proof("gaussian", "add_remove", say("its sensitivity was proven for {adjacency}", adjacency="null"))
            ),
            "gaussian hat unter der Nachbarschaft „add_remove“ keine bewiesenen Kosten: seine Sensitivität ist für",
        ),
        (
            "The budget messages pool has epsilon=8 left, too little for the next questions and the model trained on "
            "them. Answers are kept. A manager can raise its limit.",
            "Das Budget messages pool hat noch epsilon=8, zu wenig für die nächsten Fragen und das damit trainierte "
            "Modell. Die Antworten bleiben erhalten. Ein Verwalter kann die Grenze anheben.",
        ),
        (
            "Nothing was stored: nobody knows why. Nor who.",
            "Nichts wurde gespeichert: nobody knows why. Nor who.",
        ),
        ("words nobody said", "words nobody said"),
        ("", ""),
    ],
)
def test_values_come_along_in_the_signs_of_the_language(said, expected):
    with translation.override("de"):
        assert told(said).startswith(expected)
    with translation.override("en"):
        assert told(said) == said


def test_amounts_have_the_decimal_mark_of_the_page():
    """A German reads 10.000 as ten thousand."""
    with translation.override("de"):
        assert (epsilon_words(10), delta_words(1.5e-5)) == ("10,000", "1,5e-5")
    with translation.override("en"):
        assert (epsilon_words(10), delta_words(1.5e-5)) == ("10.000", "1.5e-5")


def test_what_is_spent_is_rounded_up_and_what_is_left_down():
    with translation.override("en"):
        assert (epsilon_words(6.3285), epsilon_left_words(13.6715)) == ("6.329", "13.671")
        assert (epsilon_words(0.3), epsilon_left_words(0.1 + 0.2)) == ("0.300", "0.300")
        assert epsilon_left_words(None) == "–"


def test_a_name_that_is_a_word_of_the_site_stays_a_name():
    """Only what was said is translated: a column may well be called like a button."""
    with translation.override("de"):
        assert translation.gettext("Skip") != "Skip"
        assert told(say("{role}: the file has no column named {name!r}", role="text", name="Skip")).endswith("'Skip'")


def test_a_moment_is_the_viewers():
    said = say("Block {block} closes at {closes_at} and ", block=1, closes_at="2026-03-01 12:00 UTC")
    with timezone.override(UTC), translation.override("de"):
        assert "01.03.2026 12:00" in told(said)


def test_pages_tell_a_german_what_went_wrong_with_an_upload():
    manager = make_user()
    project = make_project(owner=manager)
    add_members(project, manager, role=Role.MANAGER)
    dataset = make_records(project, ["a text"])[0].dataset
    dataset.state = DatasetState.REFUSED
    dataset.bad_row_count = 1
    dataset.bad_row_report = [{"line": 3, "column": "text", "reason": "is longer than 20,000 characters"}]
    dataset.save()
    error = "Nothing was stored: 1 bad row; it is line 3, column text: is longer than 20,000 characters."
    Job.objects.filter(pk=dataset.job_id).update(state=WorkState.FAILED, finished_at=timezone.now(), error=error)
    client = client_of(manager)
    one = client.get(reverse("annotation:dataset", args=[project.slug, dataset.pk])).content.decode()
    assert "ist länger als 20.000 Zeichen" in one
    several = client.get(reverse("annotation:data", args=[project.slug])).content.decode()
    assert "Nichts wurde gespeichert: 1 fehlerhafte Zeile" in several
    assert "Nothing was stored: 1 bad row" not in several


def test_a_form_tells_a_german_which_rule_a_number_breaks():
    manager = make_user()
    manager.user_permissions.add(Permission.objects.get(codename="add_project"))
    basic = {"name": "A", "question": "B?", "classes": "c\nd", "data_kind": PRESETS["pool-experts"].data_kinds[0]}
    sent = PRESETS["pool-experts"].defaults | basic | {"selection_rate": 1.5}
    address = reverse("annotation:new_project", args=["pool-experts"])
    page = client_of(manager).post(address, {key: value for key, value in sent.items() if value is not None})
    assert page.status_code == 422
    assert "Muss zwischen 0 und 1 liegen, angegeben ist 1,5." in page.content.decode()


def test_a_refusal_is_told_on_a_page_and_stays_english_for_a_program():
    refusal = InvalidChoice(say("There are {possible} answers to choose from.", possible=2))
    request = RequestFactory().get("/")
    request.user = AnonymousUser()
    with translation.override("de"):
        page = RefusalMiddleware(lambda _request: HttpResponse()).process_exception(request, refusal)
        problem = json.loads(refused(request, refusal).content)
    assert page is not None
    assert page.status_code == problem["status"] == 422
    assert "Zur Wahl stehen 2 Antworten." in page.content.decode()
    assert problem["detail"] == "There are 2 answers to choose from."
