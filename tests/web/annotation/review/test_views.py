import pytest
from django.urls import reverse

from annotation.models import Project, ProjectState, Role
from annotation.models.quality import Review
from annotation.questions.services import labels, queue
from tests.clients import browser_of
from tests.factories import add_members, make_annotators, make_project, make_user, open_records, write_settings

pytestmark = pytest.mark.django_db


@pytest.fixture
def disputed():
    project = make_project(overlap=2)
    open_records(project, 1)
    for choice, person in enumerate(make_annotators(project, 2)):
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)
    return project


@pytest.mark.parametrize("role", [Role.MANAGER, Role.REVIEWER])
def test_nothing_is_leased_in_an_archive(disputed, role):
    person = make_user("who")
    add_members(disputed, person, role=role)
    client = browser_of(person)
    page = reverse("annotation:review", args=[disputed.slug])
    Project.objects.filter(pk=disputed.pk).update(state=ProjectState.ARCHIVED)
    archived = client.get(page).content.decode()
    assert "is read-only" in archived
    assert 'id="decide"' not in archived
    assert not Review.objects.exists()
    Project.objects.filter(pk=disputed.pk).update(state=ProjectState.ACTIVE)
    assert 'id="decide"' in client.get(page).content.decode()
    assert Review.objects.count() == 1


def test_whoever_decides_reads_what_each_class_means(disputed):
    person = make_user("who")
    add_members(disputed, person, role=Role.REVIEWER)
    client = browser_of(person)
    page = reverse("annotation:review", args=[disputed.slug])
    assert 'id="classes"' not in client.get(page).content.decode()
    write_settings(disputed, class_descriptions=["music: what is played", 'music: "a song"'])
    shown = client.get(page).content.decode()
    assert "what is played" in shown
    assert "<q>a song</q>" in shown
    assert "data-code" not in shown
