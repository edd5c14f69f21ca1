"""Versions of a stream: the weights after an update, published under what the whole stream has paid."""

from django.db import transaction
from django.db.models import F

from annotation.services.work import Lease, finish_work
from learner.configuration import featurizer_of
from learner.errors import NotEnoughLabels
from learner.keys import key_of
from learner.linear_model import LinearModel
from learner.models import Stream, TrainingRun
from learner.services import attempts, release_gate, releases
from learner.stream_configuration import learner_of
from privacy.errors import SimulationNotReleasable
from privacy.services import ledger
from privacy.services.faults import fault_point


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
    with releases.staged_release(run, model, featurizer, entries=[stream.entry]) as staged:
        fault_point("training_staged")
        lease.check()
        with transaction.atomic():
            finish_work(row=run)
            entry = ledger.record_post_processing(
                account=project.pool_account,
                parent=stream.entry,
                operation="a version of the paid stream",
                purpose=f"release version {run.version}",
                subject=attempts.subject_of(run),
                output_digest=staged.digest,
                key=key_of(run, run.attempt),
            )
            candidate = releases.publish(run, staged, entry=entry, lineage=[stream.entry, entry])
            Stream.objects.filter(pk=stream.pk).update(batches_released=F("batches_used"))
            fault_point("training_published")
    release_gate.check_release(release_id=candidate.pk)
