"""What the demonstration says where a project, or the one beside it, could not pay for its last release."""

import pytest

from annotation.models import Project
from dpal_site.demo import stage as stages
from dpal_site.demo.plans import voice_plan
from learner.models import ModelRelease
from learner.rounds.next_step import Step, project_status
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


def project_with(epsilon: float, *, releases: int, measured: bool = True) -> Project:
    """Return a project that ends for want of budget after so many releases of epsilon 2."""
    project = learning.open_trusted(make_user(), selection="random", pool_epsilon=epsilon, maximum_releases=None)
    if measured:
        learning.fill_trusted(project)
    else:
        learning.upload(project, [[text] for text in learning.sentences(80)], ["text"])
    if releases:
        learning.run_to_release(project, make_user(), version=releases)
    learning.work_off(project)
    project = Project.objects.get(pk=project.pk)
    assert project_status(project).step == Step.CANNOT_PAY
    assert ModelRelease.objects.filter(project=project).count() == releases
    return project


def stage_of(project: Project, companion: Project) -> stages.Stage:
    return stages.Stage({}, "", [stages.Pair(voice_plan(contributors=10), project, companion)])


def test_a_comparison_that_could_not_pay_ends_with_what_there_is():
    stage = stage_of(project_with(4.5, releases=2), project_with(2.5, releases=1))
    assert stages.dead_end(stage) == ""
    assert stages.is_finished(stage)
    rows = stages.release_lines(stage)
    beside = stages.HEADINGS.index("random choice")
    assert [(row[1], row[beside] == "-") for row in rows] == [("1", False), ("2", True)]
    project, companion = stage.projects
    first, second = stages.words_of_early_ends(stage)
    assert first.startswith(f"{project.name} ended with version 2: The budget ")
    assert second.startswith(f"{companion.name} ended with version 1: The budget ")
    (verdict,) = stages.words_of_choices(stage)
    assert " random choice at version 1 (" in verdict


def test_a_release_that_is_not_measured_yet_is_waited_for():
    stage = stage_of(project_with(4.5, releases=2), project_with(2.5, releases=1, measured=False))
    assert not stages.is_finished(stage)


def test_a_project_without_any_release_is_a_dead_end():
    stage = stage_of(project_with(1.0, releases=0), project_with(2.5, releases=1))
    assert not stages.is_finished(stage)
    assert stages.dead_end(stage).startswith(f"{stage.projects[0].name}: The budget ")
