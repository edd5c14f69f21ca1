import pytest

from annotation.models import Project
from dpal_site.demo import stage as stages
from dpal_site.demo.plans import voice_plan
from dpal_site.demo.report import Compared, report_lines
from learner.models import ModelRelease
from learner.rounds.next_step import Step, project_status
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
BESIDE = Compared(releases=(0.4, 0.8), version_0=0.6, random=0.7, no_privacy=0.9, constant=0.1)


def project_with(epsilon: float, *, releases: int, measured: bool = True) -> Project:
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


def stage_of(project: Project) -> stages.Stage:
    return stages.Stage({}, "", [(voice_plan(contributors=10), project)])


def test_a_project_that_could_not_pay_ends_with_what_there_is():
    stage = stage_of(project_with(4.5, releases=2))
    ((plan, project),) = stage.opened
    assert stages.dead_end(stage) == ""
    assert stages.is_finished(stage)
    (told,) = stages.words_of_early_ends(stage)
    assert told.startswith(f"{project.name} ended with release 2: The budget ")
    lines = "\n".join(report_lines(plan, project, BESIDE)).splitlines()
    assert max(map(len, lines)) <= 100
    assert [line.split()[1] for line in lines if line.lstrip().startswith("release")] == ["1", "2"]


def test_a_release_that_is_not_measured_yet_is_waited_for():
    assert not stages.is_finished(stage_of(project_with(2.5, releases=1, measured=False)))


def test_a_project_without_any_release_is_a_dead_end():
    stage = stage_of(project_with(1.0, releases=0))
    assert not stages.is_finished(stage)
    assert stages.dead_end(stage).startswith(f"{stage.opened[0][1].name}: The budget ")
