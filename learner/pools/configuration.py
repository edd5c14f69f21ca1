"""Settings of a project as the learner reads them."""

from collections.abc import Iterator, Sequence
from typing import Literal, cast

import numpy as np
from django.db.models import QuerySet
from numpy.typing import NDArray

from annotation.choices.catalogue import CATALOGUE, chosen_of
from annotation.choices.classes import counted_words, unmerged_classes
from annotation.choices.policies import BatchPolicy, policy_choice_of
from annotation.choices.randomizers import ANNOTATOR, answers_unit, chosen_randomizer
from annotation.models import DataKind, Dataset, DatasetRole, Project, Selection
from annotation.questions.selectors import counting_places, marks_spans
from learner.errors import UnknownChoice
from learner.estimators.choice import INTERCEPT_SCALING, EstimatorChoice, PrivateEstimator, Shape
from learner.estimators.descriptions import ClassDescription
from learner.estimators.pick import PickedFit
from learner.estimators.streaming import StreamingLinearClassifier
from learner.estimators.version_zero import enough_examples
from learner.features.base import Featurizer
from learner.features.choice import FeaturesChoice, RecordShape
from learner.features.span_tables import SpanWords
from learner.linear_model import LinearModel
from learner.models import ModelRelease
from learner.pools.class_words import descriptions_of
from learner.strategies.base import OracleName, QueryStrategy, StrategyChoice, strategy_behind
from learner.strategies.bernoulli_screen import BernoulliScreen, TwoRates
from learner.strategies.secret_blocks import SecretBlocks
from learner.strategies.secret_sample import SecretSample
from privacy.accounting.events import AnswersEvent, Event, LabelTrainingEvent, StreamEvent
from privacy.choices import Kind, Parameter
from privacy.ledger.models import AccountUnit, Filter
from privacy.mechanisms.randomized_response import mechanism_of
from privacy.wording import in_english


def learned_classes(project: Project) -> tuple[str, ...]:
    return unmerged_classes(project.classes, project.merged_classes)


def learned_numbers(project: Project, choices: NDArray[np.int64]) -> NDArray[np.int64]:
    places = np.array(counting_places(project), dtype=np.int64)
    return np.searchsorted(np.unique(places), places[choices]) if len(places) else choices


def counted_places(project: Project, choices: NDArray[np.int64]) -> NDArray[np.int64]:
    places = np.array(counting_places(project), dtype=np.int64)
    return places[choices] if len(places) else choices


def places_of_model(project: Project, names: Sequence[str]) -> NDArray[np.int64]:
    """Return of each class of a model of the project the position of the one it counts as now, shape (n_classes,)."""
    if not counting_places(project):
        return np.arange(len(names), dtype=np.int64)
    known = {str(name): place for place, name in enumerate(project.classes)}
    now = [project.renamed_classes.get(name, name) for name in names]
    return counted_places(project, np.array([known[name] for name in now], dtype=np.int64))


def models_of_classes(
    releases: QuerySet[ModelRelease], project: Project, classes: Sequence[str]
) -> Iterator[tuple[ModelRelease, LinearModel]]:
    """Yield those releases, newest first, whose classes are these, whatever they were called then."""
    for release in releases.order_by("-version").iterator(chunk_size=10):
        model = LinearModel.from_json(release.weights).renamed(project.renamed_classes)
        if model.classes == tuple(classes):
            yield release, model


DEFAULT_NORMALIZER = "L1"
STARTS = (DatasetRole.PUBLIC_START, DatasetRole.CHARGED_START)


def features_choice_of(project: Project) -> FeaturesChoice:
    choice = chosen_of(Kind.FEATURES, project.settings)
    if choice is None:
        raise UnknownChoice(in_english("No features are called {got}.", got=project.features))
    return cast(FeaturesChoice, choice.of(project.settings))


def record_shape_of(project: Project) -> RecordShape:
    return RecordShape(
        data_kind=project.data_kind,
        dimension=project.feature_dimension,
        # Where a gate counts texts by a normal form, features must not tell apart what it took for equal.
        normalizer=project.normalizer or DEFAULT_NORMALIZER,
        columns=project.columns,
        image_height=project.image_height or 1,
        image_width=project.image_width or 1,
    )


def featurizer_of(project: Project) -> Featurizer:
    choice, shape = features_choice_of(project), record_shape_of(project)
    if marks_spans(project):
        return SpanWords(normalizer=shape.normalizer)
    return choice.featurizer(shape)


def estimator_choice_of(project: Project) -> EstimatorChoice:
    choice = chosen_of(Kind.ESTIMATOR, project.settings)
    if choice is None or not issubclass(choice, EstimatorChoice):
        raise UnknownChoice(in_english("No estimator is called {got}.", got=project.estimator))
    return choice.of(project.settings)


def estimator_of(project: Project, featurizer: Featurizer, *, prior: LinearModel | None = None) -> PrivateEstimator:
    """Return the estimator of one release, unfitted; every parameter is public, and so is `prior`, a released model."""
    shape = Shape(
        classes=list(range(len(learned_classes(project)))),
        norm_bound=featurizer.norm_bound,
        intercept_scaling=INTERCEPT_SCALING,
        prior=prior,
        adjacency=training_adjacency(project),
        answers=answers_event_of(project),
        open_answers=answers_are_open(project),
        labels_per_record=project.labels_per_record,
        has_examples=enough_examples(learned_classes(project), words_about_classes(project)),
    )
    return estimator_choice_of(project).estimator(shape)


def release_estimator_of(
    project: Project, featurizer: Featurizer, *, later: bool, prior: LinearModel | None = None
) -> PrivateEstimator:
    """Return the estimator of one release, unfitted, with its pick where a release came before (`later`)."""
    estimator = estimator_of(project, featurizer, prior=prior)
    starts = later or _leans_on_words(project, featurizer)
    starts = starts or Dataset.objects.filter(project=project, role__in=STARTS).exists()
    if not starts or not estimator_choice_of(project).picks:
        return estimator
    return PickedFit(estimator, of_answers=charges_answers(project))


def _leans_on_words(project: Project, featurizer: Featurizer) -> bool:
    """Say whether a first training starts from the words about the classes."""
    if project.data_kind != DataKind.TEXT:
        return False
    words = words_about_classes(project)
    if estimator_choice_of(project).leans_on_names:
        return featurizer.knows_words or bool(words)
    return enough_examples(learned_classes(project), words)


def words_about_classes(project: Project) -> dict[str, ClassDescription]:
    """Return the words about the classes that are learned: a class's own, and those of all that count as it."""
    lines = counted_words(project.settings.get("class_descriptions") or (), project.classes, project.merged_classes)
    return descriptions_of({"class_descriptions": lines}, learned_classes(project))


def answers_event_of(project: Project) -> AnswersEvent | None:
    """Return the one event that pays for all answers, None where they are not randomised."""
    settings = project.settings
    choice = chosen_randomizer(settings)
    if choice is None or choice.mechanism is None:
        return None
    event = choice.of(settings).event(n_classes=len(project.classes))
    if event is None:
        raise TypeError(f"{choice.name} draws no responses, and does not declare that answers are open")
    if not isinstance(mechanism_of(event), choice.mechanism):
        raise TypeError(f"{choice.name} is charged as {event.kind}, and draws by {choice.mechanism.__name__}")
    unit, cap = answers_unit(settings), settings.get("answers_cap")
    if event.unit != unit or (unit == ANNOTATOR and (cap is None or event.questions_per_annotator < cap)):
        raise TypeError(f"{choice.name} does not pay for all that its account is said to hide")
    return event


def answers_are_open(project: Project) -> bool:
    """Say whether the project's answers are declared not to be secret, so that models learn from them as they are."""
    choice = chosen_randomizer(project.settings)
    return choice is not None and choice.mechanism is None


def training_adjacency(project: Project) -> Literal["null", "replace"]:
    """Return which neighbours the epsilon of a training is meant for; behind a gate an answer replaced by another."""
    return "replace" if charges_answers(project) and estimator_choice_of(project).loss != "logistic" else "null"


def charges_answers(project: Project) -> bool:
    """Say whether trainings are charged for single answers, to questions that are public."""
    return project.labels_account is not None and project.labels_account.unit == AccountUnit.ANSWER


def charged_event(project: Project, training: Event) -> Event:
    """Return a training's event as its account is charged: in a crowd project for one answer, else as it adds up."""
    if project.labels_account is None and project.pool_account.filter == Filter.ZCDP:
        return training.in_rho()
    if not charges_answers(project) or isinstance(training, AnswersEvent):
        return training
    return LabelTrainingEvent(training, estimator_choice_of(project).loss)


def strategy_choice_of(project: Project, name: str = "") -> StrategyChoice:
    choice = CATALOGUE.find(Kind.STRATEGY, name or project.selection)
    if choice is None:
        raise UnknownChoice(in_english("No selection is called {got}.", got=name or project.selection))
    return cast(StrategyChoice, choice.of(project.settings))


def strategy_of(project: Project, name: str) -> QueryStrategy:
    """Return the strategy called `name` as the project sets it, once it is sound in front of the project's oracle."""
    choice = _asking_again(project) if name == Selection.REPEAT_VOTES else strategy_choice_of(project, name)
    answers = answers_event_of(project)
    strategy = strategy_behind(choice, None if answers is None else answers.epsilon)
    strategy.check_oracle(cast(OracleName, project.oracle))
    return strategy


def _asking_again(project: Project) -> StrategyChoice:
    """Return what asks again: the project's selection, or where that was changed meanwhile the one that can."""
    own = CATALOGUE.find(Kind.STRATEGY, project.selection)
    able = [choice for choice in CATALOGUE.of_kind(Kind.STRATEGY) if any(map(_repeats, choice.parameters()))]
    return strategy_choice_of(project, project.selection if own in able else able[0].name)


def _repeats(parameter: Parameter) -> bool:
    return parameter.name == Selection.REPEAT_VOTES


def blocks_choice_of(project: Project) -> SecretBlocks:
    choice = strategy_choice_of(project)
    assert isinstance(choice, SecretBlocks)
    return choice


def secret_sample_of(project: Project, *, block: int) -> SecretSample:
    strategy = SecretSample(blocks_choice_of(project).block_rates[block - 1])
    strategy.check_oracle(cast(OracleName, project.oracle))
    return strategy


def stream_screen(project: Project) -> BernoulliScreen | None:
    """Return the screen that decides about each record, None where all are asked about."""
    choice = strategy_choice_of(project)
    if not isinstance(choice, TwoRates):
        return None
    screen = choice.strategy()
    screen.check_oracle(cast(OracleName, project.oracle))
    return screen


def policy_of(project: Project) -> BatchPolicy:
    return policy_choice_of(project.settings).batches()


def learner_of(project: Project, featurizer: Featurizer) -> StreamingLinearClassifier:
    classes = list(range(len(project.classes)))
    learner = estimator_choice_of(project).estimator(Shape(classes, featurizer.norm_bound, INTERCEPT_SCALING))
    assert isinstance(learner, StreamingLinearClassifier)
    return learner


def stream_event(project: Project) -> Event:
    """Return what the whole stream must be charged, before any record of it is read."""
    featurizer = featurizer_of(project)
    update = learner_of(project, featurizer).event_for(featurizer.dimension)
    screen, policy = stream_screen(project), policy_of(project)
    q_hi, q_lo = (1.0, 1.0) if screen is None else screen.rates
    return StreamEvent(q_hi, q_lo, update, policy.selection_visible, policy.schedule)


def records_at_once(project: Project, *, batches: int, most: int) -> int:
    """Return how many records to read for `batches` further batches: about as many as these take, `most` at most."""
    slots = policy_of(project).slots_at(_smallest_rate(project))
    return most if slots is None else min(most, batches * slots)


def _smallest_rate(project: Project) -> float:
    screen = stream_screen(project)
    return 1.0 if screen is None else screen.rates[1]
