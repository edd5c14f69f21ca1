"""Starts of a project: examples, version 0 and a first charged training."""

import hashlib
import json
import logging
from uuid import NAMESPACE_URL, uuid5

import numpy as np
from django.db import transaction

from annotation.choices.label_types.learning import chosen_estimator
from annotation.models import DataKind, Dataset, DatasetRole, Project, Record
from annotation.models.database import hold_lock
from annotation.questions.selectors import marks_spans
from learner.errors import NoVersionZero
from learner.estimators.baseline import LogisticRegressionBaseline
from learner.estimators.choice import INTERCEPT_SCALING, ConvexChoice
from learner.estimators.span_words import span_examples, span_version_zero
from learner.estimators.streaming import StreamingLinearClassifier
from learner.estimators.version_zero import Encode, EncodedWords, version_zero
from learner.features.base import Featurizer
from learner.features.span_tables import span_features
from learner.linear_model import LinearModel
from learner.models import WarmStart
from learner.pools import features, selectors
from learner.pools.configuration import (
    estimator_of,
    featurizer_of,
    learned_classes,
    learned_numbers,
    words_about_classes,
)
from privacy.errors import SimulationNotReleasable
from privacy.ledger import services as ledger
from privacy.ledger.faults import fault_point
from privacy.ledger.models import BudgetAccount, EntryKind, LedgerEntry
from privacy.wording import as_message

logger = logging.getLogger(__name__)

# Of what public examples are learned with where the project's own model has none.
USUAL_REGULARIZATION = 1.0


def start_model(project: Project) -> LinearModel | None:
    """Return the model of the project's start, trained now if it never was; None without one."""
    dataset = selectors.start_of(project)
    if dataset is None:
        return None
    version = featurizer_of(project).version
    stored = WarmStart.objects.filter(dataset=dataset).first()
    if stored is None:
        private = dataset.role == DatasetRole.CHARGED_START
        stored = train_charged(dataset) if private else _fit_examples(dataset)
    return LinearModel.from_json(stored.weights) if stored.features_version == version else None


def _fit_examples(dataset: Dataset) -> WarmStart:
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


logger = logging.getLogger(__name__)
SUBJECT = "start"
# The first half of the lock's number; the second is the upload's.
LOCK = 7_302


def train_charged(dataset: Dataset) -> WarmStart:
    """Return the model of a private start, trained and paid for unless another worker has done so meanwhile."""
    with hold_lock(kind=LOCK, number=dataset.pk):
        return WarmStart.objects.filter(dataset=dataset).first() or _train(dataset)


def _train(dataset: Dataset) -> WarmStart:
    account = dataset.account
    assert account is not None
    attempt = _settle_dead(account) + 1
    features.find_room(dataset.project, [dataset])
    reservation = ledger.reserve(
        account=account,
        event=selectors.start_event(dataset.project),
        purpose="train the first model on private examples",
        key=uuid5(NAMESPACE_URL, f"dpal:start:{dataset.pk}:{attempt}"),
        subject=SUBJECT,
    )
    featurizer = featurizer_of(dataset.project)
    weights = _fit(dataset, featurizer).to_json()
    fault_point("start_fitted")
    digest = hashlib.sha256(json.dumps(weights, sort_keys=True).encode()).hexdigest()
    with transaction.atomic():
        entry = ledger.commit(reservation=reservation, output_digest=digest)
        stored = WarmStart.objects.create(
            dataset=dataset,
            weights=weights,
            features_version=featurizer.version,
            examples=dataset.row_count,
            entry=entry,
        )
    logger.info("project %s starts from private examples", dataset.project_id)
    return stored


def _settle_dead(account: BudgetAccount) -> int:
    """Charge what attempts that ended without an output had reserved, and return how many attempts there were."""
    earlier = LedgerEntry.objects.filter(account=account, subject=SUBJECT, kind=EntryKind.RESERVE)
    ledger.charge_open(entries=earlier)
    return earlier.count()


def _fit(dataset: Dataset, featurizer: Featurizer) -> LinearModel:
    project = dataset.project
    estimator = estimator_of(project, featurizer)
    known = Record.objects.filter(dataset=dataset, label__isnull=False).order_by("row_number")
    table = np.array(list(known.values_list("row_number", "label")), dtype=np.int64)
    X, classes = np.asarray(features.open_features(dataset)[table[:, 0]]), learned_numbers(project, table[:, 1])
    estimator.fit(X, classes)
    if not estimator.releasable:
        raise SimulationNotReleasable("The noise was seeded, so the model has no guarantee.")
    return LinearModel(estimator.coef_, estimator.intercept_, learned_classes(project), estimator.multiclass)


def described_model(project: Project) -> LinearModel | None:
    """Return the model of the words about the project's classes, at epsilon 0; None where there are none."""
    if marks_spans(project):
        return described_spans(project)
    descriptions = words_about_classes(project)
    if not descriptions or project.data_kind != DataKind.TEXT:
        return None
    return version_zero(learned_classes(project), descriptions, _encoder_of(project))


def described_spans(project: Project) -> LinearModel | None:
    """Return the model of the example values and sentences of types, at epsilon 0; None where nobody wrote any."""
    types = learned_classes(project)
    coef = span_version_zero(types, words_about_classes(project), span_features())
    return None if coef is None else LinearModel(coef, np.zeros(len(coef)), types, "spans")


def why_no_version_zero(project: Project) -> str:
    """Say why a project has no model of words alone; an empty text where it has one."""
    if project.data_kind != DataKind.TEXT:
        return as_message("No version 0: it needs texts.")
    if not learned_classes(project):
        return as_message("No version 0: name the classes first.")
    if marks_spans(project):
        if span_examples(learned_classes(project), words_about_classes(project)):
            return ""
        return as_message("No version 0: write examples of each type.")
    if not words_about_classes(project) and not featurizer_of(project).knows_words:
        return as_message("No version 0: describe each class, or choose a sentence encoder.")
    return ""


def version_zero_of(project: Project) -> LinearModel:
    """Return the model that is given out as version 0: of the words about the classes, else of their names."""
    why_not = why_no_version_zero(project)
    if why_not:
        raise NoVersionZero(why_not)
    spans = described_spans(project) if marks_spans(project) else None
    return spans or version_zero(learned_classes(project), words_about_classes(project), _encoder_of(project))


def word_prior(project: Project) -> LinearModel | None:
    """Return the model that learning from randomised answers starts from; None where words mean nothing to it."""
    words = _encoded_words(project)
    return words.directions() if words is not None and words.say_something else None


def described_prior(project: Project) -> LinearModel | None:
    """Return what a first training starts from, in the scale of the project's estimator; None where it cannot."""
    if marks_spans(project):
        return described_spans(project)
    words = _encoded_words(project)
    return None if words is None else estimator_of(project, featurizer_of(project)).leaning(words)


def stream_start(project: Project, learner: StreamingLinearClassifier) -> LinearModel | None:
    """Return what a stream starts from in the scale of its learner; None where words are too few to say it."""
    words = _encoded_words(project)
    return None if words is None else learner.first_model(words)


def _encoded_words(project: Project) -> EncodedWords | None:
    """Return all words about the project's classes with its features, None where these are not of texts."""
    if project.data_kind != DataKind.TEXT:
        return None
    knows_names = featurizer_of(project).knows_words
    return EncodedWords(
        tuple(learned_classes(project)), words_about_classes(project), _encoder_of(project), knows_names
    )


def _encoder_of(project: Project) -> Encode:
    featurizer = featurizer_of(project)
    return lambda texts: featurizer.transform(list(texts)).astype(np.float64)
