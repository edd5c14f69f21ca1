"""A first model from labelled examples: rounds score with it until a release does better, trainings lean on it.

Made of public rows alone it costs nothing and needs no noise. Made of private ones it is the output of one private
training, charged to their own account before a row is read, and all that uses it is post-processing. Neither is a
release, so nobody may download it.
"""

import logging

import numpy as np
from django.db import transaction

from annotation.choices.label_types.learning import chosen_estimator
from annotation.models import Dataset, DatasetRole, Project, Record
from learner import selectors
from learner.configuration.classes import learned_classes, learned_numbers
from learner.configuration.pool import featurizer_of
from learner.estimators.baseline import LogisticRegressionBaseline
from learner.estimators.choice import INTERCEPT_SCALING, ConvexChoice
from learner.linear_model import LinearModel
from learner.models import WarmStart
from learner.pools.services import features
from learner.starts.services import charged_training

logger = logging.getLogger(__name__)

# Of what public examples are learned with where the project's own model has none.
USUAL_REGULARIZATION = 1.0


def start_model(project: Project) -> LinearModel | None:
    """Return the model of the project's start, trained now if it never was; None without one.

    A start in other features than the project's is left aside: its weights would mean something else.
    """
    dataset = selectors.start_of(project)
    if dataset is None:
        return None
    version = featurizer_of(project).version
    stored = WarmStart.objects.filter(dataset=dataset).first()
    if stored is None:
        private = dataset.role == DatasetRole.CHARGED_START
        stored = charged_training.train_charged(dataset) if private else _train(dataset)
    return LinearModel.from_json(stored.weights) if stored.features_version == version else None


def _train(dataset: Dataset) -> WarmStart:
    project = dataset.project
    known = Record.objects.filter(dataset=dataset, label__isnull=False).order_by("row_number")
    table = np.array(list(known.values_list("row_number", "label")), dtype=np.int64)
    X = features.open_features(dataset)[table[:, 0]]
    chosen = chosen_estimator(project.settings)
    trained = None if chosen is None else chosen.of(project.settings)
    strength = trained.regularization if isinstance(trained, ConvexChoice) else USUAL_REGULARIZATION
    twin = LogisticRegressionBaseline(
        strength, classes=list(range(len(learned_classes(project)))), intercept_scaling=INTERCEPT_SCALING
    )
    twin.fit(np.asarray(X), learned_numbers(project, table[:, 1]))
    model = LinearModel(twin.coef_, twin.intercept_, learned_classes(project))
    with transaction.atomic():
        # Two workers find the same weights; one row names them.
        stored, made = WarmStart.objects.get_or_create(
            dataset=dataset,
            defaults={
                "weights": model.to_json(),
                "features_version": featurizer_of(project).version,
                "examples": len(table),
            },
        )
    if made:
        logger.info("project %s starts from %s public examples", project.pk, len(table))
    return stored
