"""Noisy sums of secret blocks: each release adds its own to all before, and reads no record again."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.db.models import QuerySet
from numpy.typing import NDArray

from annotation.models import Project
from learner.configuration.classes import learned_classes
from learner.configuration.pool import blocks_choice_of
from learner.estimators.choice import PrivateEstimator
from learner.estimators.sums import PrivateSums
from learner.features.base import Featurizer
from learner.models import TrainingRun
from learner.models.sums import ReleasedSums
from learner.strategies.blocks import weights_of_block
from privacy.mechanisms.sums import NoisySums
from privacy.models import LedgerEntry


@dataclass(frozen=True, slots=True)
class Earlier:
    """The sums of all blocks before, and the weight of the new one's beside them."""

    sums: NoisySums
    own_weight: float


def earlier_sums(run: TrainingRun, estimator: PrivateEstimator, featurizer: Featurizer) -> Earlier | None:
    """Return the released sums of all blocks before, None where there are none of this shape.

    Another featuriser or another constant column begin anew: such sums do not add up. A class that was added since has
    none in the blocks before: zeros take its place, which is computing with what was released. Each block has the same
    noise, so a block counts by its public rate.
    """
    if run.block is None or not isinstance(estimator, PrivateSums):
        return None
    known = _that_add_up(run.project, estimator, featurizer)
    stored = known.first()
    if stored is None:
        return None
    every = blocks_choice_of(run.project).block_rates
    before = [every[(block or 1) - 1] for block in known.values_list("run__block__block", flat=True)]
    own = every[(run.block.block or 1) - 1]
    of_earlier, of_own = weights_of_block(before, own)
    moments = None if stored.moments is None else _matrix(stored.moments, stored.dimension)
    class_sums = estimator.with_further_classes(_matrix(stored.class_sums, stored.dimension))
    sums = NoisySums(moments, class_sums, stored.moment_variance, stored.class_variance)
    return Earlier(sums.times(of_earlier), of_own)


def _that_add_up(project: Project, estimator: PrivateSums, featurizer: Featurizer) -> QuerySet[ReleasedSums]:
    """Return the sums of the project's classes, or of the first of them, the newest first."""
    stored = ReleasedSums.objects.filter(run__project=project).order_by("-run__version")
    shapes = set(stored.order_by().values_list("shape", flat=True).distinct())
    classes = learned_classes(project)
    numbers = range(len(classes), 1, -1)
    wanted = [shape for n in numbers if (shape := _shape(classes[:n], estimator, featurizer)) in shapes]
    return stored.filter(shape__in=wanted)


def store_sums(run: TrainingRun, estimator: PrivateEstimator, featurizer: Featurizer, entry: LedgerEntry) -> None:
    """Keep what a secret block released with all before it, in the transaction that publishes its model."""
    if run.block is None or not isinstance(estimator, PrivateSums):
        return
    sums = estimator.sums_
    ReleasedSums.objects.create(
        run=run,
        entry=entry,
        shape=_shape(learned_classes(run.project), estimator, featurizer),
        moments=None if sums.moments is None else sums.moments.tobytes(),
        class_sums=sums.class_sums.tobytes(),
        dimension=sums.class_sums.shape[1],
        moment_variance=sums.moment_variance,
        class_variance=sums.class_variance,
    )


def _matrix(stored: bytes | memoryview, dimension: int) -> NDArray[np.float64]:
    return np.frombuffer(bytes(stored), dtype=np.float64).reshape(-1, dimension).copy()


def _shape(classes: Sequence[str], estimator: PrivateSums, featurizer: Featurizer) -> str:
    said = {
        "features": [featurizer.kind, featurizer.parameters()],
        "classes": list(classes),
        "constant": estimator.intercept_scaling,
        "norm_bound": estimator.norm_bound,
        "moments": estimator.moment_share > 0,
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
