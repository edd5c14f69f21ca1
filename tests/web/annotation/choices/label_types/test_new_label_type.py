"""A type of label declared here alone is there everywhere: asked, agreed on, randomised, learned and exported."""

import json

import pytest
from django.urls import reverse

from annotation.choices.label_types.base import LabelType
from annotation.data.services import label_files
from annotation.errors import InvalidChoice
from annotation.models import Assignment, AssignmentState, Consensus, Label, Role
from annotation.questions.services import labels, queue
from annotation.review import services as comparing
from learner.models import ModelRelease
from learner.models.answers import RandomizedLabel
from tests import learning
from tests.clients import browser_of
from tests.examples.label_type import SHY, Shyly
from tests.factories import add_members, make_annotators, make_project, make_user, open_records
from tests.markup import tight

pytestmark = pytest.mark.django_db(transaction=True)
DECLARED = Shyly


@pytest.fixture
def project(declared):
    return make_project(question_kind="shyly", classes=["good", "bad"], overlap=3)


def answer(project, choices):
    for person, choice in zip(make_annotators(project, len(choices)), choices, strict=True):
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)


def test_the_label_page_asks_it_in_its_words_by_its_keys(project):
    (person,) = make_annotators(project, 1)
    open_records(project, 1)
    web = browser_of(person)
    html = tight(web.get(reverse("annotation:label", args=(project.slug,))).content.decode())
    assert 'value="2" data-shortcut="3 h"' in html
    assert "hard to say" in html
    assert "No, it is wrong" in html
    held = Assignment.objects.get(state=AssignmentState.LEASED)
    web.post(reverse("annotation:submit", args=(held.pk,)), {"choice": SHY})
    assert Label.objects.get().choice == SHY
    open_records(project, 1)
    with pytest.raises(InvalidChoice, match="3 answers"):
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=3)


def test_answers_agree_and_are_compared_its_way_and_stand_in_files_by_its_names(project):
    open_records(project, 1)
    answer(project, [SHY, 1, SHY])
    agreed = Consensus.objects.get()
    assert (agreed.choice, agreed.votes, agreed.agreeing) == (1, 3, 1)
    report = comparing.start_report(project=project, owner=project.created_by)
    comparing.make_report(job_id=str(report.job_id))
    report.refresh_from_db()
    assert report.alpha == pytest.approx(Shyly.coefficient.of([[SHY, 1, SHY]]))
    add_members(project, project.created_by, role=Role.MANAGER)
    page = browser_of(project.created_by).get(reverse("annotation:quality", args=(project.slug,)))
    assert "alpha of the shy" in page.content.decode()
    lines = b"".join(label_files.export_labels(project=project, format="jsonl")).decode().splitlines()
    rows = [json.loads(line) for line in lines]
    assert sorted((row["answer"], row["consensus"]) for row in rows) == [("?", "bad"), ("?", "bad"), ("bad", "bad")]


def test_what_it_teaches_is_what_a_training_reads(declared):
    owner, person = make_user(is_superuser=True), make_user()
    project = learning.open_trusted(owner, question_kind="shyly", selection="random", classes=learning.CLASSES)
    learning.fill_trusted(project)
    learning.work_off(project)
    add_members(project, person)
    hard = queue.claim_next(project=project, user=person)
    labels.submit_label(assignment=hard, choice=SHY)
    # A model of two classes refuses a third: what was hard to say has not reached it.
    learning.run_to_release(project, person, version=1)
    assert ModelRelease.objects.get(project=project).version == 1


def test_what_a_crowd_agrees_on_is_said_by_chance_its_way(declared):
    """A response names one of two classes: what nobody dared to say is settled by a coin of the type's own."""
    settings = {"label_randomizer": "randomized_consensus", "answers_epsilon": 4.0, "labels_epsilon": 4.0}
    settings |= {"estimator": "channel", "repeat_votes": False, "features": "static_encoder", "overlap": 3}
    project = learning.open_crowd(make_user(), question_kind="shyly", **settings)
    learning.fill_crowd(project)
    people = make_annotators(project, 3)
    learning.work_off(project)
    for person in people:
        while (held := queue.claim_next(project=project, user=person)) is not None:
            labels.submit_label(assignment=held, choice=SHY)
    learning.work_off(project, version=1)
    assert set(Consensus.objects.values_list("choice", flat=True)) == {SHY}
    said = list(RandomizedLabel.objects.values_list("said", flat=True))
    assert len(said) == 8
    assert set(said) <= {0, 1}


def test_answers_that_no_coin_settles_are_not_randomised():
    class Unsettled(LabelType):
        possible, exported = Shyly.possible, Shyly.exported

    settings = {"label_randomizer": "randomized_consensus"}
    assert set(Unsettled().rules(settings)) == {"label_randomizer"}
    assert not Shyly().rules(settings)
