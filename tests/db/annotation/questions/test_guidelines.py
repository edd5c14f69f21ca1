"""Guidelines come in versions that stay, and each person knows one of them."""

import pytest

from annotation.models import Guidelines, Membership
from annotation.questions.services import guidelines
from tests.factories import make_annotators, make_project

pytestmark = pytest.mark.django_db
EXAMPLE = {"text": "rain tomorrow?", "choice": 1, "reason": "asks for the weather"}


def test_the_first_words_are_version_one_and_a_change_is_version_two():
    project = make_project(guidelines="Take the first.")
    manager = project.created_by
    saved = guidelines.save_guidelines(project=project, text="Take the best.", examples=[EXAMPLE], author=manager)
    assert saved.version == project.guidelines_version == 2
    assert list(Guidelines.objects.order_by("version").values_list("version", "text")) == [
        (1, "Take the first."),
        (2, "Take the best."),
    ]
    project.refresh_from_db()
    assert guidelines.current_guidelines(project).examples == [EXAMPLE]
    assert project.guidelines == "Take the best."


def test_words_where_there_were_none_are_version_one():
    project = make_project()
    saved = guidelines.save_guidelines(project=project, text="New.", examples=[], author=project.created_by)
    assert (saved.version, Guidelines.objects.count()) == (1, 1)


def test_the_same_words_again_are_no_change():
    project = make_project(guidelines="As it is.")
    same = guidelines.save_guidelines(project=project, text="As it is.", examples=[], author=project.created_by)
    assert (same.version, Guidelines.objects.count()) == (1, 0)


def test_what_a_person_knows_is_noted_for_them_alone():
    project = make_project(guidelines_version=4)
    person, other = make_annotators(project, 2)
    guidelines.mark_guidelines_seen(project=project, user=person)
    seen = dict(Membership.objects.values_list("user", "guidelines_seen"))
    assert seen == {person.pk: 4, other.pk: None}
