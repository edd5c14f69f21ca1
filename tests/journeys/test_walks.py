import sys
from importlib import util
from textwrap import dedent

import pytest

from learner.models import ModelRelease
from learner.rounds.services import loop
from tests import learning
from tests.entered import walked
from tests.factories import make_user


@pytest.mark.django_db(transaction=True)
def test_an_experts_row_calls_nobody_back():
    project = learning.open_trusted(make_user(), selection="random")
    with walked() as walk:
        learning.fill_trusted(project)
        learning.work_off(project)
    assert {"annotation.data.services.datasets", "annotation.questions.services.queue"} <= set(walk.entered)
    assert not walk.called_back


@pytest.mark.django_db(transaction=True)
def test_a_crowds_rows_texts_and_releases_call_nobody_back():
    project = learning.open_crowd(make_user())
    with walked() as texts:
        learning.fill_crowd(project)
        learning.work_off(project)
    assert {"annotation.data.services.datasets", "annotation.gates.services"} <= set(texts.entered)
    learning.label_everything(project, make_user())
    loop.advance_project(project_id=project.pk)
    with walked() as release:
        learning.work_off(project)
    assert ModelRelease.objects.filter(project=project).exists()
    assert "learner.releases.services.publishing" in release.entered
    assert not texts.called_back + release.called_back


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("selection", ["top_c", "random"])
def test_a_release_of_experts_calls_nobody_back(selection):
    project = learning.open_trusted(make_user(), selection=selection, training_epsilon=100.0, pool_epsilon=400.0)
    with walked() as walk:
        learning.fill_trusted(project)
        learning.run_to_release(project, make_user(), version=2)
    assert {"annotation.questions.services.labels", "learner.rounds.services.training"} <= set(walk.entered)
    assert not walk.called_back


def test_a_module_that_is_called_back_is_found(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    services = tmp_path / "services"
    services.mkdir()
    monkeypatch.syspath_prepend(services)
    (services / "low_walk.py").write_text("def run(then):\n    then()\n")
    (tmp_path / "engine_walk.py").write_text("def process(then):\n    then()\n")
    (services / "high_walk.py").write_text(
        dedent("""
        import engine_walk
        import low_walk

        def back():
            pass

        def straight():
            low_walk.run(int)
            back()

        def around():
            low_walk.run(back)

        def by_no_service():
            engine_walk.process(back)

        def into_another():
            engine_walk.process(lower)

        lower = low_walk.run.__get__(int)
        """)
    )
    spec = util.find_spec("high_walk")
    high = util.module_from_spec(spec)
    spec.loader.exec_module(high)
    with walked(tmp_path) as walk:
        high.straight()
    assert list(walk.entered) == ["high_walk", "low_walk"]
    assert not walk.called_back
    with walked(tmp_path) as walk:
        high.around()
    assert walk.called_back == ["low_walk -> high_walk.back"]
    with walked(tmp_path) as walk:
        high.by_no_service()
    assert list(walk.entered) == ["high_walk"]
    assert walk.called_back == ["engine_walk -> high_walk.back"]
    with walked(tmp_path) as walk:
        high.into_another()
    assert list(walk.entered) == ["high_walk", "low_walk"]
    assert not walk.called_back
    assert sys.getprofile() is None
