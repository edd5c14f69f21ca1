"""Application configuration."""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig

from annotation.choices.catalogue import CATALOGUE
from privacy.choices import Choice, Kind

if TYPE_CHECKING:
    from annotation.models import LeasedWork
    from annotation.projects.selectors import CardModel


class LearnerConfig(AppConfig):
    name = "learner"

    def ready(self) -> None:
        from annotation.projects.selectors import MODEL_SOURCES  # noqa: PLC0415  # settings are loaded by now
        from annotation.signals import classes_changed, draft_opened, limit_changing  # noqa: PLC0415  # settings are loaded by now
        from annotation.work.services.jobs import LONG_WORK  # noqa: PLC0415  # settings are loaded by now

        limit_changing.connect(issue_cards, dispatch_uid="learner.releases.cards")
        draft_opened.connect(keep_forecast, dispatch_uid="learner.forecast")
        classes_changed.connect(keep_series, dispatch_uid="learner.series")
        CATALOGUE.add_source(learner_choices)
        MODEL_SOURCES.append(newest_models)
        LONG_WORK.update(long_work())


def long_work() -> "dict[type[LeasedWork], tuple[str, str]]":
    from learner.models import Round, SharesReport, TrainingRun  # noqa: PLC0415  # tables are known by now
    from learner.pools import keys  # noqa: PLC0415  # as above

    return {
        Round: (keys.RUN_ROUND_TASK, "round_id"),
        TrainingRun: (keys.TRAIN_MODEL_TASK, "run_id"),
        SharesReport: (keys.MEASURE_SHARES_TASK, "report_id"),
    }


def issue_cards(**changing: object) -> None:
    from learner.releases.services import card_issues  # noqa: PLC0415  # loads what only a release needs

    card_issues.issue_for_higher_limit(**changing)  # type: ignore[arg-type]  # a signal says nothing of its arguments


def keep_forecast(*, draft: Any, project: Any, **_signal: Any) -> None:
    """Let the simulations of a draft be those of its project."""
    from learner.models.planning import PlanSimulation  # noqa: PLC0415  # tables are known by now

    PlanSimulation.objects.filter(draft=draft).update(project=project, draft=None)


def keep_series(**changed: object) -> None:
    """Refuse classes with which trainings leave the series that was paid for."""
    from learner.pools import records  # noqa: PLC0415  # tables are known by now

    records.refuse_leaving_series(**changed)  # type: ignore[arg-type]  # a signal says nothing of its arguments


def newest_models(projects: Collection[int]) -> "Mapping[int, CardModel]":
    from learner.releases.selectors import models_of  # noqa: PLC0415  # tables are known by now

    return models_of(projects)


def learner_choices() -> Iterable[type[Choice]]:
    """Return the choices of the learner, one line each in its catalogues."""
    from learner.estimators import catalogue as estimators  # noqa: PLC0415  # slow import
    from learner.estimators.choice import EstimatorChoice  # noqa: PLC0415  # slow import
    from learner.features import catalogue as features  # noqa: PLC0415  # slow import
    from learner.features.choice import FeaturesChoice  # noqa: PLC0415  # slow import
    from learner.pools import class_words  # noqa: PLC0415  # slow import
    from learner.strategies import catalogue as strategies  # noqa: PLC0415  # slow import
    from learner.strategies.base import StrategyChoice  # noqa: PLC0415  # slow import

    CATALOGUE.require(Kind.ESTIMATOR, EstimatorChoice)
    CATALOGUE.require(Kind.FEATURES, FeaturesChoice)
    CATALOGUE.require(Kind.STRATEGY, StrategyChoice)
    return (*strategies.CHOICES, *estimators.CHOICES, *features.CHOICES, *class_words.CHOICES)
