"""What a project's configuration means to the learner: its featuriser, its estimator, its query strategies."""

import math
from typing import Any, cast

from annotation.models import DataKind, Features, Project, Selection
from learner.blocks import block_rates
from learner.estimators.catalogue import PrivateEstimator, Training, estimator_for
from learner.features.base import Featurizer
from learner.features.encoder import SentenceEncoder
from learner.features.image import ImageFeaturizer
from learner.features.principal import PrincipalImageFeaturizer
from learner.features.tabular import TabularFeaturizer
from learner.features.text import HashingTextFeaturizer
from learner.linear_model import LinearModel
from learner.models import FeatureProjection
from learner.strategies.base import OracleName, QueryStrategy
from learner.strategies.catalogue import strategy_for
from learner.strategies.screen import Screen
from learner.strategies.secret_sample import ScreenedSecretSample, SecretSample
from privacy.accounting.events_features import SecondMomentsEvent, second_moments_event

# Part of the published featuriser, like the number of columns; nothing about it depends on data.
PROJECTION_SEED = 0
DEFAULT_NORMALIZER = "L1"
# The noise of a covariance grows with its columns, so images are pooled to at most this many cells a side first.
LARGEST_COVARIANCE_SIDE = 10
# A constant column of 1 would make rows, and so the noise, half as long again; at 0.2 it is all but free.
INTERCEPT_SCALING = 0.2
# Enough for an average; more change the order by little and take as much longer.
UNCERTAINTY_DRAWS = 20
# Every featuriser clips to this; distances beyond it, which an intercept may bring, are screened like it.
NORM_BOUND = 1.0
# A screened block asks about one in so many of its records far from the boundary.
OUTSIDE_SLAB = 5


def featurizer_of(project: Project) -> Featurizer:
    """Return the project's featuriser, fixed by its configuration alone."""
    if project.data_kind == DataKind.TEXT:
        # Where a gate counts texts by a normal form, features must not tell apart what it took for equal.
        normalizer = project.normalizer or DEFAULT_NORMALIZER
        if project.features == Features.ENCODER:
            return SentenceEncoder(
                n_features=min(project.feature_dimension, SentenceEncoder.width()),
                projection_seed=PROJECTION_SEED,
                normalizer=normalizer,
            )
        return HashingTextFeaturizer(project.feature_dimension, normalizer=normalizer)
    if project.data_kind == DataKind.TABLE:
        return TabularFeaturizer.from_parameters({"columns": project.columns})
    if project.features == Features.PRINCIPAL:
        return principal_featurizer_of(project)
    return _image_featurizer(
        height=project.image_height or 1, width=project.image_width or 1, wanted=project.feature_dimension
    )


def principal_featurizer_of(project: Project) -> PrincipalImageFeaturizer:
    """Return the project's principal directions, or before they are paid for a featuriser that only knows its width."""
    height, width = project.image_height or 1, project.image_width or 1
    pooled = (min(height, LARGEST_COVARIANCE_SIDE), min(width, LARGEST_COVARIANCE_SIDE))
    pixels = ImageFeaturizer(height, width, pooled=pooled, centered=True)
    found = FeatureProjection.objects.filter(project=project).first()
    return PrincipalImageFeaturizer(
        pixels, min(project.feature_dimension, pixels.dimension), found.components if found else None
    )


def projection_event(project: Project) -> SecondMomentsEvent:
    """Return what finding the project's principal directions costs, before any row is read."""
    featurizer = principal_featurizer_of(project)
    assert project.features_epsilon is not None
    return second_moments_event(
        project.features_epsilon, featurizer.pixels.dimension, norm_bound=featurizer.pixels.norm_bound
    )


def _image_featurizer(*, height: int, width: int, wanted: int) -> ImageFeaturizer:
    """Pool to a square of `wanted` cells where there is one, else project the pixels to `wanted` columns."""
    if wanted >= height * width:
        return ImageFeaturizer(height, width, centered=True)
    side = math.isqrt(wanted)
    if side * side == wanted and side <= min(height, width):
        return ImageFeaturizer(height, width, pooled=(side, side), centered=True)
    return ImageFeaturizer(height, width, projection=(wanted, PROJECTION_SEED), centered=True)


def estimator_of(project: Project, featurizer: Featurizer, *, prior: LinearModel | None = None) -> PrivateEstimator:
    """Return the estimator of one release, unfitted; every parameter is public, and so is `prior`, a released model."""
    training = Training(
        epsilon=project.training_epsilon,
        delta=project.training_delta,
        regularization=project.regularization,
        smoothing=project.smoothing,
        step_size=project.step_size,
        radius=project.weight_radius,
        average=project.average_iterates,
    )
    return estimator_for(
        project.estimator,
        training,
        classes=list(range(len(project.classes))),
        norm_bound=featurizer.norm_bound,
        intercept_scaling=INTERCEPT_SCALING,
        prior=prior,
    )


def strategy_of(project: Project, name: str) -> QueryStrategy:
    """Return the strategy called `name` as the project sets it, once it is sound in front of the project's oracle."""
    strategy = strategy_for(name, scale=project.selection_epsilon, parameters=_parameters(project, name))
    strategy.check_oracle(cast(OracleName, project.oracle))
    return strategy


def _parameters(project: Project, name: str) -> dict[str, Any]:
    rates = {"high": project.screen_high, "low": project.screen_low}
    slab = {"threshold": math.exp(-project.screen_reach)}
    parameters: dict[str, dict[str, Any]] = {
        Selection.UNCERTAINTY: {"measure": project.uncertainty_measure, "draws": UNCERTAINTY_DRAWS},
        Selection.BERNOULLI_SCREEN: rates | slab,
        Selection.EXPOSURE_CAPPED_SCREEN: rates | slab | {"exposures": project.exposures},
        Selection.VERSION_SPACE_SCREEN: rates | {"half_angle": project.half_angle},
        Selection.EXPONENTIAL_SCREEN: {
            "threshold": project.exponential_threshold,
            "epsilon": project.selection_epsilon,
            "norm_bound": NORM_BOUND,
        },
    }
    return parameters.get(name, {})


def screen_of(project: Project) -> Screen | None:
    """Return the screen that chooses for the project, None where something else does."""
    strategy = strategy_of(project, project.selection)
    return strategy if isinstance(strategy, Screen) else None


def secret_sample_of(project: Project, *, block: int) -> SecretSample:
    """Return the secret sample of one block at its public rate."""
    rate = block_rates(first_block_rate(project))[block - 1]
    screened = project.screened_blocks and block > 1
    strategy = (
        ScreenedSecretSample(rate, outside_rate=rate / OUTSIDE_SLAB, slab=project.screen_reach)
        if screened
        else SecretSample(rate)
    )
    strategy.check_oracle(cast(OracleName, project.oracle))
    return strategy


def first_block_rate(project: Project) -> float:
    """Return the rate of the first secret block, which the database demands of every project that has one."""
    assert project.selection_rate is not None
    return project.selection_rate
