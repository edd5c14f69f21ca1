"""Tasks: the loop of every project, rounds and trainings."""

from celery import shared_task

from annotation.data.services import retention
from annotation.people.services import letters
from learner import notices
from learner.models import ModelRelease
from learner.pools import features
from learner.releases import evaluations
from learner.releases.services import checks
from learner.rounds.services import closing as deletion
from learner.rounds.services import forgetting, loop, streams, training
from learner.shares import services as shares
from learner.simulation import services as simulation_services
from learner.simulation.public_rows import read_public

# Between two looks for what is overdue.
RETENTION_SECONDS = 3600


@shared_task
def advance_project_task(*, project_id: int) -> None:
    loop.advance_project(project_id=project_id)


@shared_task
def advance_projects_task() -> None:
    """Look after every active project: steps that are due, and work whose worker is gone."""
    loop.advance_projects()


@shared_task
def run_round_task(*, round_id: int) -> None:
    loop.run_round(round_id=round_id)


@shared_task
def forget_abandoned_parts_task() -> None:
    """Delete features that workers made and nobody put together."""
    features.forget_abandoned()


@shared_task
def train_model_task(*, run_id: str) -> None:
    training.train_model(run_id=run_id)


@shared_task(acks_late=True)
def forget_contributor_task(*, job_id: str) -> None:
    forgetting.forget_contributor(job_id=job_id)


@shared_task(acks_late=True)
def simulate_plan_task(*, job_id: str) -> None:
    simulation_services.run_simulation(job_id=job_id, read_public=read_public)


@shared_task(acks_late=True)
def delete_project_task(*, job_id: str) -> None:
    deletion.delete_project(job_id=job_id)


@shared_task
def apply_retention_task() -> None:
    """Have each project with something overdue lose it by itself, so that one's fault stops no other."""
    for project_id in retention.due_projects():
        # The next look sends it again, so that no more than one waits.
        apply_project_retention_task.apply_async(kwargs={"project_id": project_id}, expires=RETENTION_SECONDS)


@shared_task(acks_late=True)
def apply_project_retention_task(*, project_id: int) -> None:
    forgetting.apply_retention(project_id=project_id)


@shared_task
def run_stream_task(*, project_id: int) -> None:
    streams.run_stream(project_id=project_id)


@shared_task
def measure_shares_task(*, report_id: str) -> None:
    shares.measure_shares(report_id=report_id)


@shared_task
def check_release_task(*, release_id: int) -> None:
    """Ask the release gate about a release candidate once more."""
    checks.check_release(release_id=release_id)


@shared_task
def evaluate_release_task(*, release_id: int) -> None:
    evaluations.evaluate_release(release=ModelRelease.objects.select_related("project").get(pk=release_id))


@shared_task(ignore_result=True)
def write_letters_task() -> None:
    """Write down what people are to be told by mail, and hand on the letters that are due."""
    notices.record_notices()
    letters.gather_letters()
