"""What a project's configuration means to the learner: its featuriser, its estimator, its query strategies."""

from math import isqrt
from typing import cast

from annotation.models import DataKind, Project, Selection
from learner.blocks import block_rates
from learner.estimators.logistic import PrivateLogisticRegression
from learner.features.base import Featurizer
from learner.features.image import ImageFeaturizer
from learner.features.tabular import TabularFeaturizer
from learner.features.text import HashingTextFeaturizer
from learner.linear_model import LinearModel
from learner.strategies.base import OracleName, QueryStrategy
from learner.strategies.catalogue import strategy_for
from learner.strategies.secret_sample import SecretSample

# Part of the published featuriser, like the number of columns; nothing about it depends on data.
PROJECTION_SEED = 0
DEFAULT_NORMALIZER = "L1"
# A constant column of 1 would make rows, and so the noise, half as long again; at 0.2 it is all but free.
INTERCEPT_SCALING = 0.2
# Enough for an average; more change the order by little and take as much longer.
UNCERTAINTY_DRAWS = 20


def featurizer_of(project: Project) -> Featurizer:
    """Return the project's featuriser, fixed by its configuration alone."""
    if project.data_kind == DataKind.TEXT:
        # Where a gate counts texts by a normal form, features must not tell apart what it took for equal.
        return HashingTextFeaturizer(project.feature_dimension, normalizer=project.normalizer or DEFAULT_NORMALIZER)
    if project.data_kind == DataKind.TABLE:
        return TabularFeaturizer.from_parameters({"columns": project.columns})
    return _image_featurizer(
        height=project.image_height or 1, width=project.image_width or 1, wanted=project.feature_dimension
    )


def _image_featurizer(*, height: int, width: int, wanted: int) -> ImageFeaturizer:
    """Pool to a square of `wanted` cells where there is one, else project the pixels to `wanted` columns."""
    if wanted >= height * width:
        return ImageFeaturizer(height, width, centered=True)
    side = isqrt(wanted)
    if side * side == wanted and side <= min(height, width):
        return ImageFeaturizer(height, width, pooled=(side, side), centered=True)
    return ImageFeaturizer(height, width, projection=(wanted, PROJECTION_SEED), centered=True)


def estimator_of(
    project: Project, featurizer: Featurizer, *, prior: LinearModel | None = None
) -> PrivateLogisticRegression:
    """Return the estimator of one release, unfitted; every parameter is public, and so is `prior`, a released model."""
    return PrivateLogisticRegression(
        epsilon=project.training_epsilon,
        regularization=project.regularization,
        classes=list(range(len(project.classes))),
        norm_bound=featurizer.norm_bound,
        intercept_scaling=INTERCEPT_SCALING,
        prior=prior,
    )


def strategy_of(project: Project, name: str) -> QueryStrategy:
    """Return the strategy called `name` at the project's scale, once it is sound in front of the project's oracle."""
    parameters = {"draws": UNCERTAINTY_DRAWS} if name == Selection.UNCERTAINTY else {}
    strategy = strategy_for(name, scale=project.selection_epsilon, parameters=parameters)
    strategy.check_oracle(cast(OracleName, project.oracle))
    return strategy


def secret_sample_of(project: Project, *, block: int) -> SecretSample:
    """Return the secret sample of one block at its public rate."""
    strategy = SecretSample(block_rates(first_block_rate(project))[block - 1])
    strategy.check_oracle(cast(OracleName, project.oracle))
    return strategy


def first_block_rate(project: Project) -> float:
    """Return the rate of the first secret block, which the database demands of every project that has one."""
    assert project.selection_rate is not None
    return project.selection_rate
