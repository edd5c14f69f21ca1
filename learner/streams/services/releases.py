"""Versions of a stream: the weights after an update, published under what the whole stream has paid."""

from django.db.models import F

from annotation.work.services.attempts import Lease
from learner.configuration.pool import featurizer_of
from learner.configuration.stream import learner_of
from learner.errors import NotEnoughLabels
from learner.linear_model import LinearModel
from learner.models import Stream, TrainingRun
from learner.releases.services import checks, publishing
from learner.work.services import attempts
from privacy.errors import SimulationNotReleasable
from privacy.wording import as_message


def release_version(run: TrainingRun, lease: Lease) -> None:
    """Publish the weights as they stand; no noise is drawn, so a second attempt publishes the same."""
    project = run.project
    stream = Stream.objects.select_related("entry__account", "entry__parent").get(project=project)
    if stream.learner_state is None or stream.entry is None or stream.batches_used != run.stream_batches:
        raise NotEnoughLabels("The stream does not stand where this version was started.")
    featurizer = featurizer_of(project)
    learner = learner_of(project, featurizer).resume(stream.learner_state)
    if not learner.releasable:
        raise SimulationNotReleasable("The noise came from a seed, so the model carries no guarantee.")
    model = LinearModel(learner.coef_, learner.intercept_, tuple(project.classes), "softmax")
    paid = stream.entry
    with publishing.staged_version(run, model, featurizer, entries=[paid], lease=lease) as staged:
        entry = attempts.record_descent(
            run,
            account=project.pool_account,
            parent=paid,
            operation=as_message("a version of the paid stream"),
            purpose=as_message("release a version of the stream's model"),
            output_digest=staged.digest,
        )
        Stream.objects.filter(pk=stream.pk).update(batches_released=F("batches_used"))
        candidate = publishing.publish(staged, entry=entry, lineage=[paid, entry])
    checks.check_release(release_id=candidate.pk)
