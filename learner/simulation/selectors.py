"""Forecast of rounds and releases that the budget still pays for, by the events and prices of the real loop."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from django.db.models import Max

from annotation.budget.label_budget import questions_left
from annotation.choices.policies import policy_choice_of
from annotation.models import UNFINISHED, Arrival, Oracle, Project, Query, QueryState, Selection
from learner.models import ModelRelease, Round, TrainingRun
from learner.pools import records, selectors
from learner.pools import records as pool_selectors
from learner.pools.configuration import secret_sample_of, strategy_of
from learner.pools.prices import round_series
from privacy.accounting.event import Event
from privacy.ledger.models import BudgetAccount, Filter
from privacy.ledger.rules import price
from privacy.ledger.selectors import last_entry
from privacy.wording import as_message, as_plural_message, joined_messages

# A plan that goes on for longer is not walked to its end: a page waits for it.
MOST_STAGES = 300


class End(StrEnum):
    """Why the forecast ends where it does."""

    BUDGET = "budget"
    PLAN = "plan"
    POOL = "pool"
    FAR = "far"


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """A round (`choosing` is its event, None where it is free) or, without one, a release; with the training to pay."""

    is_round: bool
    training: Event
    choosing: Event | None = None


@dataclass(frozen=True, slots=True)
class PlanForecast:
    """Rounds and releases the budget still pays for, and the events of the next ones; None where none will come."""

    rounds: int
    releases: int
    end: End
    next_round: Event | None
    next_training: Event | None

    @property
    def sentence(self) -> str:
        if self.end == End.POOL and not self.rounds and not self.releases:
            return as_message("There is nothing to ask about now, so no further round and no release is planned.")
        reasons = {
            End.BUDGET: as_message("then it is too little for the next model"),
            End.PLAN: as_message("and the plan is complete"),
            End.POOL: as_message("then there is nothing left to ask"),
            End.FAR: as_message("and for more after that"),
        }
        parts = [
            as_message(
                "At the current plan the budget pays for {reason_rounds} and {reason_releases}, {reason}.",
                reason_rounds=as_plural_message("{n} more round", "{n} more rounds", n=self.rounds),
                reason_releases=as_plural_message("{n} more release", "{n} more releases", n=self.releases),
                reason=reasons[self.end],
            )
        ]
        if self.next_round is not None:
            parts.append(as_message("Next round: {reason}.", reason=self.next_round.summary()))
        if self.next_training is not None:
            parts.append(as_message("Next training: {reason}.", reason=self.next_training.summary()))
        return joined_messages(" ", parts)


class Purse:
    """What an account has left, in the integers the database compares."""

    def __init__(self, account: BudgetAccount) -> None:
        self.account = account
        self.pure = account.filter == Filter.PURE
        last = last_entry(account)
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

    def _cost(self, event: Event) -> tuple[int, int]:
        if event not in self._prices:
            charge = price(self.account, event)
            self._prices[event] = ((charge.epsilon_nano if self.pure else charge.rho_nano) or 0, charge.delta_atto)
        return self._prices[event]


def plan_forecast(project: Project) -> PlanForecast | None:
    """Walk the plan from where the project stands; None while work runs, whose outcome is not in the account yet."""
    if project.arrival == Arrival.STREAM:
        return None
    for work in (Round, TrainingRun):
        if work.objects.filter(project=project, state__in=UNFINISHED).exists():
            return None
    version = ModelRelease.objects.filter(project=project).aggregate(newest=Max("version", default=0))["newest"]
    planned = None if project.maximum_releases is None else project.maximum_releases - version
    if planned is not None and planned <= 0:
        return PlanForecast(rounds=0, releases=0, end=End.PLAN, next_round=None, next_training=None)
    purse = Purse(selectors.training_account(project))
    for event in selectors.pending_projection(project):
        purse.pay(event)
    done: list[PlannedStage] = []
    end = End.POOL
    following: list[PlannedStage] = []
    releases = 0
    for stage in _stages(project):
        following.append(stage)
        if releases == planned:
            end = End.PLAN
        elif len(done) == MOST_STAGES:
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
    rounds = [stage for stage in following if stage.is_round]
    return PlanForecast(
        rounds=len(done) - releases,
        releases=releases,
        end=end,
        next_round=next((stage.choosing for stage in rounds), None),
        next_training=next((stage.training for stage in following), None),
    )


def _choosing(stage: PlannedStage) -> list[Event]:
    return [] if stage.choosing is None else [stage.choosing]


def _stages(project: Project) -> Iterator[PlannedStage]:
    return _secret_stages(project) if records.labels_in_secret(project) else _open_stages(project)


def _open_stages(project: Project) -> Iterator[PlannedStage]:
    """Choose rounds until enough labels wait, train, and begin again, until nothing is left to ask."""
    training = selectors.training_event(project)
    counts = selectors.question_counts(project)
    waiting, used = counts.newly_done + counts.open, counts.done_before
    policy = policy_choice_of(project.settings)
    left = _questions_left(project)
    has_model = selectors.can_score(project, selectors.newest_release(project))
    series = round_series(project)
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
        yield PlannedStage(False, training)
        waiting, used, has_model = 0, used + waiting, True


def _secret_stages(project: Project) -> Iterator[PlannedStage]:
    current = records.current_block(project)
    following = records.next_block(project)
    if following is None or not pool_selectors.pool_size(project):
        following = records.n_blocks(project) + 1
    open_blocks = [] if current is None else [current.block or 0]
    left = range(following, records.n_blocks(project) + 1)
    trainings = records.coming_events(project, [*open_blocks, *left])
    if current is not None:
        yield PlannedStage(False, trainings.pop(0))
    for block, training in zip(left, trainings, strict=True):
        choosing = secret_sample_of(project, block=block).event_for(pool_size=0, picks=0, series="single")
        yield PlannedStage(True, training, choosing)
        yield PlannedStage(False, training)


def _questions_left(project: Project) -> int:
    if project.oracle == Oracle.CROWD:
        candidates = Query.objects.filter(project=project, state=QueryState.UNASKED).count()
    else:
        candidates = pool_selectors.unasked_records(project).count()
    affordable = questions_left(project)
    return candidates if affordable is None else min(candidates, affordable)
