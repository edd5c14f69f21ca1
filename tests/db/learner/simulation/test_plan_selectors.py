import pytest

from annotation.models import Project
from learner.models import ModelRelease, Round
from learner.rounds.next_step import Step, project_status
from learner.rounds.services import selection
from learner.simulation.forecast import forecast_of
from learner.simulation.selectors import End, PlanForecast, plan_forecast
from privacy.ledger.models import EntryKind
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


def walk(project: Project) -> tuple[int, int]:
    """Let the loop run with people who agree until it stops; returns the rounds and releases it made."""
    before = Round.objects.filter(project=project).count(), ModelRelease.objects.filter(project=project).count()
    annotator = make_user()
    for _ in range(60):
        learning.work_off(project)
        project.refresh_from_db()
        if project_status(project).step in (Step.CANNOT_PAY, Step.FINISHED, Step.FEW_LABELS):
            break
        learning.label_everything(project, annotator)
        if project_status(project).step == Step.LABELLING:
            selection.close_block(project=project)
    after = Round.objects.filter(project=project).count(), ModelRelease.objects.filter(project=project).count()
    return after[0] - before[0], after[1] - before[1]


def agrees(project: Project) -> PlanForecast:
    told = plan_forecast(project)
    assert told is not None
    assert walk(project) == (told.rounds, told.releases)
    return told


@pytest.mark.one_in(2)
@pytest.mark.slow
@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("plan", "end"),
    [
        ({"maximum_releases": 3}, End.PLAN),
        # Two trainings at 2, and of the first top-c series of rounds all that exposes a record.
        ({"pool_epsilon": 5.0, "maximum_releases": None}, End.BUDGET),
        ({"pool_epsilon": 1.0}, End.BUDGET),
        ({"pool_epsilon": 60.0, "maximum_releases": None}, End.POOL),
        ({"pool_epsilon": 60.0, "maximum_releases": None, "round_size": 5}, End.POOL),
        ({"pool_epsilon": 6.6, "maximum_releases": None, "round_size": 5}, End.BUDGET),
    ],
)
def test_the_loop_makes_what_was_foretold(plan, end):
    project = learning.open_trusted(make_user(), **plan)
    learning.fill_trusted(project)
    assert agrees(project).end == end


@pytest.mark.slow
def test_a_crowd_pays_for_its_trainings_alone():
    project = learning.open_crowd(make_user())
    learning.fill_crowd(project)
    told = agrees(project)
    assert told.next_round is None
    assert told.releases >= 1


def test_the_next_events_are_those_the_loop_reserves():
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    learning.run_to_release(project, make_user(), version=1)
    told = plan_forecast(project)
    learning.run_to_release(project, make_user(), version=2)
    kinds = project.pool_account.entries.filter(kind=EntryKind.RESERVE, subject__in=["round:2", "release:2"])
    reserved = [entry.event for entry in kinds.order_by("sequence")]
    assert [told.next_round.to_json(), told.next_training.to_json()] == reserved
    assert (told.rounds, told.releases, told.end) == (2, 2, End.PLAN)
    assert len(told.costs) == len(told.labels) == 2


def test_a_plan_without_end_is_not_walked_to_its_end(monkeypatch):
    monkeypatch.setattr("learner.simulation.selectors.MOST_STAGES", 3)
    project = learning.open_trusted(make_user(), pool_epsilon=60.0)
    learning.fill_trusted(project)
    told = plan_forecast(project)
    assert (told.rounds, told.releases, told.end) == (2, 1, End.FAR)
    assert forecast_of(project).sentence == (
        "1 more model fits: ε 2.000. The next one learns from about 12 labels. More may follow."
    )
