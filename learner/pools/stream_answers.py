"""Progress of a stream: due updates, releases, and what it waits for."""

from datetime import datetime, timedelta

from django.db.models import Exists, F, OuterRef, Q, Sum
from django.db.models.functions import Now

from annotation.choices.policies import policy_hides_selection
from annotation.choices.rules import hides_selection
from annotation.data.selectors import waiting_posts
from annotation.models import UNFINISHED, Project, ProjectState, Query, QueryState, WorkState
from learner.models import ModelRelease, Stream, StreamBatch, TrainingRun
from learner.pools.configuration import stream_screen
from learner.pools.records import TrainedOn

# A release that fails this often needs a person.
MAX_FAILED_RELEASES = 3
# Updates of one transaction; more would hold the stream's lock for long.
MOST_UPDATES = 500


def may_move(project: Project) -> bool:
    """Say whether the project is active and has releases left to make."""
    if Project.objects.filter(pk=project.pk, state=ProjectState.ACTIVE).exists():
        return project.maximum_releases is None or releases_made(project) < project.maximum_releases
    return False


def releases_made(project: Project) -> int:
    return ModelRelease.objects.filter(project=project).count()


def stream_of(project: Project) -> Stream | None:
    """Return where the stream stands, None before its first record."""
    return Stream.objects.filter(project=project).select_related("entry__account", "entry__parent").first()


def time_to_answer(project: Project) -> timedelta:
    """Return how long after it closes a batch makes its update at the latest, or exactly, where windows are hidden."""
    return timedelta(hours=project.window_hours)


def due_batches(project: Project, stream: Stream) -> list[StreamBatch]:
    """Return the batches whose updates can be made now, in order and up to the next release.

    Visible: everything of the batch is answered, or its time has come. Hidden: its time has come, and nothing else
    counts, since an update that came earlier would say that few were asked.
    """
    left = project.updates_per_release - (stream.batches_used - stream.batches_released)
    open_questions = Query.objects.filter(project=project, round_number=OuterRef("number"), state=QueryState.OPEN)
    waiting = StreamBatch.objects.filter(stream=stream, number__gt=stream.batches_used).order_by("number")
    timed_out = Q(closes_at__lte=Now())
    due = timed_out if policy_hides_selection(project.settings) else timed_out | ~Exists(open_questions)
    next_batches = waiting.annotate(due=Q(due))[: min(left, MOST_UPDATES)]
    ready: list[StreamBatch] = []
    for batch in next_batches:
        if not batch.due:
            break
        ready.append(batch)
    return ready


def release_is_due(project: Project, stream: Stream) -> bool:
    """Say whether enough updates were made since the last release, and the release does not keep failing."""
    made = stream.batches_used - stream.batches_released
    return made >= project.updates_per_release and failed_releases(project) < MAX_FAILED_RELEASES


def release_is_running(project: Project) -> bool:
    return TrainingRun.objects.filter(project=project, state__in=UNFINISHED).exists()


def failed_releases(project: Project) -> int:
    return TrainingRun.objects.filter(
        project=project, state=WorkState.FAILED, version=releases_made(project) + 1
    ).count()


def has_work(project: Project) -> bool:
    """Say whether a worker would find something to do; asked often, so it reads little."""
    if not may_move(project):
        return False
    stream = stream_of(project)
    waiting = bool(waiting_posts(project.pk).exists())
    if stream is None or stream.entry_id is None:
        return waiting
    if release_is_running(project):
        return False
    room = stream.batches_closed - stream.batches_used < project.windows_ahead
    return (waiting and room) or release_is_due(project, stream) or bool(due_batches(project, stream))


def next_closing(project: Project) -> datetime | None:
    """Return when the first batch that is not learned from closes; None where there is none."""
    waiting = StreamBatch.objects.filter(stream__project=project, number__gt=F("stream__batches_used"))
    return waiting.order_by("number").values_list("closes_at", flat=True).first()


def stream_trained_on(run: TrainingRun) -> TrainedOn:
    """Return what may be said outside of the records behind a version.

    Of hidden windows the slots that were examined and the largest rate of the screen, which are public; else how many
    questions were asked in the batches that were learned from.
    """
    learned = StreamBatch.objects.filter(stream__project=run.project_id, number__lte=run.stream_batches or 0)
    if hides_selection(run.project.settings):
        last = learned.order_by("-number").first()
        screen = stream_screen(run.project)
        return TrainedOn(pool_size=last.end if last else 0, rate=1.0 if screen is None else screen.rates[0])
    return TrainedOn(questions=int(learned.aggregate(asked=Sum("questions", default=0))["asked"]))


def waits_for_answers(project: Project, stream: Stream) -> bool:
    """Say whether anything selected is not learned from yet."""
    asked = Query.objects.filter(project=project, round_number__gt=stream.batches_used)
    return stream.batches_used < stream.batches_closed or bool(asked.exists())
