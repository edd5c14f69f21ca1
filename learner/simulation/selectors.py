"""Forecast of rounds and releases that the budget still pays for, by the events and prices of the real loop."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from django.db.models import Max

from annotation.budget.label_budget import questions_left
from annotation.choices.policies import policy_choice_of
from annotation.models import UNFINISHED, Arrival, Oracle, Project, Query, QueryState, Selection
from learner.estimators.randomized_answers import FREE_TRAINING
from learner.models import ModelRelease, Round, TrainingRun
from learner.pools import records, selectors
from learner.pools.configuration import answers_event_of, secret_sample_of, strategy_of
from learner.pools.prices import round_series
from learner.pools.selectors import QuestionCounts
from privacy.accounting.event import Event, event_from_json
from privacy.accounting.events import AnswersEvent, PostProcessingEvent
from privacy.ledger.models import BudgetAccount, Filter
from privacy.ledger.rules import adjacency_of, price
from privacy.ledger.selectors import as_it_counts, last_entry

# A plan that goes on for longer is not walked to its end: a page waits for it.
MOST_STAGES = 300


class End(StrEnum):
    """Reason why the forecast ends."""

    BUDGET = "budget"
    PLAN = "plan"
    POOL = "pool"
    BLOCKS = "blocks"
    FAR = "far"


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """A round (`choosing` is its event, None where it is free) or, without one, a release; with the training to pay.

    `labels` is how many a release learns from, those of earlier releases included.
    """

    is_round: bool
    training: Event
    choosing: Event | None = None
    labels: int = 0


@dataclass(frozen=True, slots=True)
class PlanForecast:
    """Coming rounds and releases: epsilon and labels of each, the next events, and the epsilon of all rounds."""

    rounds: int
    releases: int
    end: End
    next_round: Event | None
    next_training: Event | None
    costs: tuple[float, ...] = ()
    labels: tuple[int, ...] = ()
    choosing: float = 0.0

    def as_json(self) -> dict[str, Any]:
        events = {"next_round": self.next_round, "next_training": self.next_training}
        written = {name: event and event.to_json() for name, event in events.items()}
        return asdict(replace(self, next_round=None, next_training=None)) | written

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "PlanForecast":
        events = {name: values[name] and event_from_json(values[name]) for name in ("next_round", "next_training")}
        rows = {name: tuple(values[name]) for name in ("costs", "labels")}
        return cls(**{**values, **events, **rows, "end": End(values["end"])})


class Purse:
    """Rest of an account, or its `whole` limit, in the integers the database compares."""

    def __init__(self, account: BudgetAccount, *, whole: bool = False) -> None:
        self.account = account
        self.pure = account.filter == Filter.PURE
        last = None if whole else last_entry(account)
        limit = account.epsilon_limit_nano if self.pure else account.rho_limit_nano or 0
        spent = (last.epsilon_spent_nano if self.pure else last.rho_spent_nano) if last else 0
        self.left = limit - spent
        self.delta_left = account.delta_sum_limit_atto - (last.delta_spent_atto if last else 0)
        self._prices: dict[Event, tuple[int, int]] = {}

    def covers(self, *events: Event) -> bool:
        """Say whether all of these could be paid together."""
        costs = [self._cost(event) for event in events]
        return sum(cost for cost, _ in costs) <= self.left and sum(delta for _, delta in costs) <= self.delta_left

    def pay(self, event: Event) -> None:
        cost, delta = self._cost(event)
        self.left -= cost
        self.delta_left -= delta

    def epsilon(self, event: Event) -> float:
        return as_it_counts(self.account, event.cost(adjacency=adjacency_of(self.account))).epsilon

    def _cost(self, event: Event) -> tuple[int, int]:
        if event not in self._prices:
            charge = price(self.account, event)
            self._prices[event] = ((charge.epsilon_nano if self.pure else charge.rho_nano) or 0, charge.delta_atto)
        return self._prices[event]


@dataclass(frozen=True, slots=True)
class Start:
    """Where a walk begins: what is there, or the whole plan over `records` that may come."""

    project: Project
    records: int | None = None
    anew: bool = False

    @property
    def counts(self) -> QuestionCounts:
        return QuestionCounts(0, 0, 0, 0, 0, 0, 0) if self.anew else selectors.question_counts(self.project)

    @property
    def releases_left(self) -> int | None:
        most = self.project.maximum_releases
        if most is None or self.anew:
            return most
        newest = ModelRelease.objects.filter(project=self.project).aggregate(n=Max("version", default=0))["n"]
        return most - int(newest)

    @property
    def questions(self) -> int:
        if self.records is None:
            return coming_questions(self.project)
        affordable = None if self.anew else questions_left(self.project)
        return self.records if affordable is None else min(self.records, affordable)

    @property
    def has_blocks(self) -> bool:
        return records.labels_in_secret(self.project)

    @property
    def pool_size(self) -> int:
        return records.pool_size(self.project) if self.records is None else self.records

    @property
    def has_model(self) -> bool:
        return not self.anew and selectors.can_score(self.project, selectors.newest_release(self.project))

    @property
    def training(self) -> Event:
        paid_once = answers_event_of(self.project) if self.anew else None
        return paid_once or selectors.training_event(self.project)


def plan_forecast(
    project: Project, *, records: int | None = None, anew: bool = False, most_releases: int | None = None
) -> PlanForecast | None:
    """Walk the plan from where the project stands; None while work runs, whose outcome is not in the account yet.

    Parameters
    ----------
    records : int, optional
        Records to plan for in place of those that are there.
    anew : bool
        Walk the whole plan at the whole limit, whatever was done and spent.
    most_releases : int, optional
        Releases after which the walk ends.
    """
    if project.arrival == Arrival.STREAM:
        return None
    for work in (Round, TrainingRun):
        if not anew and work.objects.filter(project=project, state__in=UNFINISHED).exists():
            return None
    start = Start(project, records, anew)
    planned = start.releases_left
    if planned is not None and planned <= 0:
        return PlanForecast(rounds=0, releases=0, end=End.PLAN, next_round=None, next_training=None)
    purse = Purse(selectors.training_account(project), whole=anew)
    done: list[PlannedStage] = []
    end = End.BLOCKS if start.has_blocks else End.POOL
    following: list[PlannedStage] = []
    releases = 0
    for stage in _stages(start):
        following.append(stage)
        if releases == planned:
            end = End.PLAN
        elif len(done) == MOST_STAGES or releases == most_releases:
            end = End.FAR
        # Questions are asked only where the model trained on the answers can be paid, too.
        elif not purse.covers(stage.training, *_choosing(stage)):
            end = End.BUDGET
        else:
            for event in _choosing(stage) if stage.is_round else [stage.training]:
                purse.pay(event)
            releases += not stage.is_round
            done.append(stage)
            continue
        break
    made = [stage for stage in done if not stage.is_round]
    rounds = [stage for stage in following if stage.is_round]
    chosen = [stage.choosing for stage in done if stage.is_round and stage.choosing is not None]
    return PlanForecast(
        rounds=len(done) - releases,
        releases=releases,
        end=end,
        next_round=next((stage.choosing for stage in rounds), None),
        next_training=next((stage.training for stage in following), None),
        costs=tuple(purse.epsilon(stage.training) for stage in made),
        labels=tuple(stage.labels for stage in made),
        choosing=sum(purse.epsilon(event) for event in chosen),
    )


def _choosing(stage: PlannedStage) -> list[Event]:
    return [] if stage.choosing is None else [stage.choosing]


def _stages(start: Start) -> Iterator[PlannedStage]:
    return _secret_stages(start) if start.has_blocks else _open_stages(start)


def _open_stages(start: Start) -> Iterator[PlannedStage]:
    """Choose rounds until enough labels wait, train, and begin again, until nothing is left to ask."""
    project = start.project
    training = start.training
    counts = start.counts
    waiting, used = counts.newly_done + counts.open, counts.done_before
    policy = policy_choice_of(project.settings)
    left = start.questions
    has_model = start.has_model
    series = "opened" if start.anew else round_series(project)
    while True:
        target = policy.labels_for_next_release(
            labels_at_last_release=used, labels_per_release=project.labels_per_release
        )
        while used + waiting < target and left:
            picks = min(project.round_size, left)
            strategy = strategy_of(project, project.selection)
            if strategy.needs_model and not has_model:
                strategy = strategy_of(project, Selection.RANDOM)
            event = strategy.event_for(pool_size=left, picks=picks, series=series)
            yield PlannedStage(True, training, None if project.oracle == Oracle.CROWD else event)
            if strategy.name != Selection.RANDOM:
                series = "continued"
            left -= picks
            waiting += picks
        # Too few are not trained on by themselves.
        if used + waiting < target:
            return
        yield PlannedStage(False, training, labels=used + waiting)
        if isinstance(training, AnswersEvent):
            # The first training has paid for every answer.
            training = PostProcessingEvent(operation=FREE_TRAINING)
        waiting, used, has_model = 0, used + waiting, True


def _secret_stages(start: Start) -> Iterator[PlannedStage]:
    project = start.project
    current = None if start.anew else records.current_block(project)
    following = 1 if start.anew else records.next_block(project)
    if following is None or not start.pool_size:
        following = records.n_blocks(project) + 1
    open_blocks = [] if current is None else [current.block or 0]
    left = range(following, records.n_blocks(project) + 1)
    coming = [*open_blocks, *left]
    trainings = records.coming_events(project, coming, anew=start.anew)
    asked = np.cumsum(secret_rates(project)) * start.pool_size
    for block, training in zip(coming, trainings, strict=True):
        if block in left:
            choosing = secret_sample_of(project, block=block).event_for(pool_size=0, picks=0, series="single")
            yield PlannedStage(True, training, choosing)
        yield PlannedStage(False, training, labels=round(float(asked[block - 1])))


def secret_rates(project: Project) -> list[float]:
    """Return the public share of the pool that each block asks about."""
    blocks = range(1, records.n_blocks(project) + 1)
    return [secret_sample_of(project, block=block).rate for block in blocks]


def coming_questions(project: Project) -> int:
    """Return how many questions can still be opened: what is there to ask about, as far as answers are paid for."""
    if project.oracle == Oracle.CROWD:
        candidates = Query.objects.filter(project=project, state=QueryState.UNASKED).count()
    else:
        candidates = records.records_left(project)
    affordable = questions_left(project)
    return candidates if affordable is None else min(candidates, affordable)
