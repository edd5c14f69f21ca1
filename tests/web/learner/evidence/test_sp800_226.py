"""The questions of NIST SP 800-226 on one page: from ledger and settings, "not stored" where neither knows."""

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Role
from learner.evidence.facts import facts_of
from learner.evidence.sp800_226 import NOT_STORED, answered
from privacy.audit.keys import decoded_key
from privacy.audit.notes import open_checkpoint
from privacy.services import ledger
from privacy.services.checkpoints import site_key
from tests import learning
from tests.factories import add_members, make_account, make_project, make_user
from tests.programs import Program

pytestmark = pytest.mark.django_db(transaction=True)


def page_of(project, role=Role.ENGINEER) -> tuple[str, str]:
    """Return the page and the file, as somebody of a role reads them; a program of theirs gets the same file."""
    person, client = make_user(), Client()
    add_members(project, person, role=role)
    client.force_login(person)
    page = client.get(reverse("learner:evaluation", args=[project.slug]))
    file = client.get(reverse("learner:download_evaluation", args=[project.slug]))
    assert page.status_code == file.status_code == 200
    assert "sp800-226.md" in file["Content-Disposition"]
    told = Program(person, project)("GET", "evaluation")
    assert (told["Content-Type"], told.content) == ("text/markdown; charset=utf-8", file.content)
    return page.content.decode(), file.content.decode()


def answer_to(document: str, question: str) -> str:
    return document.split(f"### {question}\n", 1)[1].split("\n#", 1)[0].strip()


def test_a_released_project_answers_from_its_ledger():
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    release = learning.run_to_release(project, make_user(), version=1)
    account = project.pool_account
    page, document = page_of(project)
    (terms,) = [each for each in release.guarantee if each["protects"] == account.label]
    parameters = answer_to(document, "Which definition of differential privacy holds, with which parameters?")
    assert f"{terms['limit_epsilon']:.6g}" in parameters
    chosen = answer_to(document, "Who chose the parameters, when, and why?")
    grant = account.entries.get(sequence=1)
    assert grant.reason in chosen
    assert grant.created_at.date().isoformat() in chosen
    used = answer_to(document, "Which mechanisms were used, how often, at what cost?").replace("\\", "")
    for name in set(account.entries.filter(kind="reserve").values_list("mechanism", flat=True)):
        assert f"| {name} |" in used
    # The checkpoint on the page is the one others witness.
    note = document.split("```\n")[1]
    checkpoint = open_checkpoint(note, public_key=decoded_key(site_key().public_key))
    assert checkpoint.size == account.entries.count()
    assert "accuracy (95 % interval)" in answer_to(document, "How useful is what is released?")
    assert "<h3>The guarantee</h3>" in page or "<h2>The guarantee</h2>" in page


def test_what_nobody_stored_says_so():
    document = answered(facts_of(make_project(pool_account=make_account())))
    for question in (
        "How were the data collected, and for what did people agree?",
        "Do records of different people depend on each other?",
        "Are the data encrypted where they lie?",
        "Does the noise harm small groups more?",
        "Is anything else released about the same people?",
    ):
        assert NOT_STORED in answer_to(document, question).lower(), question
    assert "No version is released yet" in answer_to(document, "How useful is what is released?")
    assert "None yet" in answer_to(document, "Which mechanisms were used, how often, at what cost?")
    assert "outside any common limit" in answer_to(document, "Is anything else released about the same people?")


def test_a_raised_limit_stands_there_with_its_reason_and_names_act_as_no_markup():
    account = make_account(epsilon_limit=1.0)
    project = make_project(pool_account=account, name="A | <b> # B")
    ledger.change_account_limits(
        account=account, epsilon_limit=2, delta_limit=0, actor="ada", reason="more | <i>of it</i>"
    )
    page, document = page_of(project, Role.MANAGER)
    chosen = answer_to(document, "Who chose the parameters, when, and why?")
    assert "| ada | 2, 0 |" in chosen
    assert "e^" not in answer_to(document, "What does epsilon mean for one person?")
    assert "at most 7.38906 times" in answer_to(document, "What does epsilon mean for one person?")
    assert "<i>of it" not in page
    assert "&lt;i" in page


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"privacy_unit": "record"}, "k times the epsilon"),
        ({"privacy_unit": "contributor", "oracle": "crowd", "texts_per_contributor": 2}, "at most 2 texts"),
    ],
)
def test_the_unit_says_what_one_person_may_contribute(fields, words):
    account = make_account(unit=fields["privacy_unit"])
    document = answered(facts_of(make_project(pool_account=account, **fields)))
    assert words in answer_to(document, "Is what one person contributes bounded?")


@pytest.mark.parametrize("role", [Role.ANNOTATOR, Role.REVIEWER])
def test_a_program_of_somebody_who_comes_for_no_models_gets_nothing(role):
    project, person = make_project(pool_account=make_account()), make_user()
    add_members(project, person, role=role)
    assert Program(person, project)("GET", "evaluation").status_code == 404
