"""Releases, who may see them, and the next step of a project."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum

from annotation import selectors as annotation_selectors
from annotation.budget.presenters import start_account
from annotation.models import Consensus, Dataset, Project, Query, QueryState, Role, Selection, WorkState
from annotation.selectors import Person
from learner.models import ChannelMove, ModelRelease, ReleaseState, Round, TrainingRun, WarmStart
from learner.pools import answers, records
from learner.pools import stream_answers as stream_selectors
from learner.pools.configuration import (
    charged_event,
    estimator_of,
    featurizer_of,
    release_estimator_of,
    secret_sample_of,
    strategy_of,
)
from learner.pools.records import TrainedOn
from privacy.accounting.cost import Cost
from privacy.accounting.event import Event
from privacy.errors import UnsoundCombination
from privacy.ledger.models import BudgetAccount, LedgerEntry
from privacy.ledger.rules import adjacency_of
from privacy.ledger.selectors import as_it_counts, can_pay

# What a manager may call a channel; the other names are what is offered as the newest.
CHANNEL = r"[a-z][a-z-]{1,29}"
OFFERED = ("latest", "main")
# Questions in these states have no agreed answer that counts, unless one was emptied later.
GIVEN_UP = (QueryState.DISPUTED, QueryState.SET_ASIDE, QueryState.WITHDRAWN, QueryState.IN_REVIEW)
# A round that keeps failing waits for a person instead of trying for ever.
MAX_FAILED_ROUNDS = 3
# Who may see a project's releases.
MODEL_ROLES = (Role.ENGINEER, Role.MANAGER)


def projects_with_models(person: Person) -> QuerySet[Project]:
    return annotation_selectors.projects_of(person, roles=MODEL_ROLES)


def guarantee_accounts(project: Project) -> list[BudgetAccount]:
    """Return the accounts whose limits are a release's guarantee: the pool's, any labellers', any private start's."""
    own = (project.pool_account, project.labels_account, start_account(project))
    return [account for account in own if account is not None]


def releases_of(project: Project) -> QuerySet[ModelRelease]:
    related = ("project", "entry", "endorsement", "training_run__project", "training_run__block")
    found = ModelRelease.objects.filter(project=project).select_related(*related)
    return found.prefetch_related("evaluations__dataset").order_by("-version")


def newest_release(project: Project) -> ModelRelease | None:
    found = ModelRelease.objects.filter(project=project, state=ReleaseState.RELEASED)
    return found.order_by("-version").first()


def beaten_by(release: ModelRelease) -> str:
    """Name what costs nothing and is right at least as often, over all public test sets; empty if nothing is."""
    measured = release.evaluations.all()
    if not measured:
        return ""
    right, constant, described = zip(*(evaluation.right for evaluation in measured), strict=True)
    known = [number for number in described if number is not None]
    return loses_to(sum(right), constant=sum(constant), described=sum(known) if known else None)


def loses_to(right: float, *, constant: float, described: float | None) -> str:
    """Name the free alternative that is right at least as often as a model, by counts or by shares."""
    if right <= constant:
        return "constant"
    return "version_0" if described is not None and right <= described else ""


def latest_release(project: Project) -> ModelRelease | None:
    """Return what is offered as `latest`: the newest release worth its epsilon, or that a manager vouches for."""
    found = releases_of(project).filter(state=ReleaseState.RELEASED)
    return next((one for one in found if hasattr(one, "endorsement") or not beaten_by(one)), None)


def channel_release(project: Project, channel: str) -> ModelRelease | None:
    """Return what a channel is: where it was moved last, but for versions that were retired since."""
    moves = ChannelMove.objects.filter(project=project, channel=channel, release__state=ReleaseState.RELEASED)
    newest = moves.order_by("-pk").values_list("release_id", flat=True).first()
    return None if newest is None else releases_of(project).filter(pk=newest).first()


def channels_of(project: Project) -> QuerySet[ChannelMove]:
    moves = ChannelMove.objects.filter(project=project, release__state=ReleaseState.RELEASED)
    return moves.select_related("release", "moved_by").order_by("channel", "-pk").distinct("channel")


def find_release(project: Project, version: str) -> ModelRelease | None:
    """Return the release of that number or channel, or the one that is offered as `latest`; None if there is none."""
    if version != "latest" and re.fullmatch(CHANNEL, version):
        return channel_release(project, version)
    number = version_number(version)
    return latest_release(project) if number is None else releases_of(project).filter(version=number).first()


def version_number(version: str) -> int | None:
    """Return the number an address names, 0 where it names none there can be; None for `latest`."""
    if version == "latest":
        return None
    # No column holds more digits than that.
    return int(version) if version.isdecimal() and len(version) < 10 else 0


def trained_on(run: TrainingRun) -> TrainedOn:
    """Return what may be said outside of what a training used.

    Visible rounds: the questions asked when it was started; how many of them got an agreed answer depends on what the
    records hold. A secret block: the size of the pool and the rate of the coins, which are public, and nothing else.
    """
    return trained_on_each([run])[0]


def trained_on_each(runs: Sequence[TrainingRun]) -> list[TrainedOn]:
    rounds = [run for run in runs if run.stream_batches is None and run.block is None]
    done: list[tuple[datetime | None, int | None]] = []
    if rounds:
        ended = Round.objects.filter(project=rounds[0].project_id, state=WorkState.DONE)
        done += ended.values_list("finished_at", "selected")
    return [_trained_on(run, done) for run in runs]


def _trained_on(run: TrainingRun, done: Sequence[tuple[datetime | None, int | None]]) -> TrainedOn:
    if run.stream_batches is not None:
        return stream_selectors.stream_trained_on(run)
    if run.block is not None:
        sample = secret_sample_of(run.project, block=run.block.block or 0)
        return TrainedOn(pool_size=run.block.requested, rate=sample.rate)
    return TrainedOn(questions=sum(selected or 0 for ended, selected in done if ended and ended <= run.created_at))


def labels_told(run: TrainingRun, used: TrainedOn | None = None) -> int:
    """Return about how many labels a training had, by public numbers: questions asked, or what the coins give."""
    if run.block is not None:
        numbers = range(1, (run.block.block or 0) + 1)
        rates = sum(secret_sample_of(run.project, block=number).rate for number in numbers)
        return round((run.block.requested or 0) * rates)
    used = used or trained_on(run)
    return round((used.pool_size or 0) * (used.rate or 0)) if used.questions is None else used.questions


def rounds_behind(run: TrainingRun) -> list[int]:
    """Return the numbers of the rounds whose questions a training used; none of a stream, which has no rounds."""
    if run.stream_batches is not None:
        return []
    done = Round.objects.filter(project=run.project_id, state=WorkState.DONE)
    # The numbers say nothing about answers: rounds are listed for whoever may see a release.
    used = (
        done.filter(block__lte=run.block.block)
        if run.block is not None
        else done.filter(finished_at__lte=run.created_at)
    )
    return list(used.order_by("number").values_list("number", flat=True))


def asked_in(chosen: Round) -> dict[str, int | float | None]:
    """Return what may be said outside of how many questions a round asks."""
    if chosen.block is None:
        return {"requested": chosen.requested, "selected": chosen.selected, "pool_size": None, "sampling_rate": None}
    rate = secret_sample_of(chosen.project, block=chosen.block).rate
    return {"requested": None, "selected": None, "pool_size": chosen.requested, "sampling_rate": rate}


def rounds_of(project: Project) -> QuerySet[Round]:
    related = ("project", "model", "committed_entry")
    return Round.objects.filter(project=project).select_related(*related).order_by("-number")


def round_facts(project: Project) -> list[tuple[object, ...]]:
    found = Round.objects.filter(project=project).order_by("number")
    return list(found.values_list("number", "state", "selected", "committed_entry"))


def lineage_of(release: ModelRelease) -> QuerySet[LedgerEntry]:
    return release.lineage.select_related("account", "parent").order_by("account_id", "sequence")


@dataclass(frozen=True, slots=True)
class QuestionCounts:
    """Numbers of a project's questions by state.

    `unagreed` holds those that were given up without an agreed answer, disputed ones among them. A question asked again
    is done once more when the further answers are in, so `asked_again` counts it a second time. `done_before` is what
    was done when the newest training began.
    """

    open: int
    agreed: int
    disputed: int
    unagreed: int
    unused: int
    asked_again: int
    done_before: int

    @property
    def done(self) -> int:
        """Questions that nobody is asked any more, whatever came of them."""
        return self.agreed + self.unagreed + self.asked_again

    @property
    def newly_done(self) -> int:
        """Those that were done since; fewer than nothing where some were taken back."""
        return max(0, self.done - self.done_before)


def question_counts(project: Project) -> QuestionCounts:
    """Count the questions people work on, what they agreed on, and what of that no training has used."""
    agreed_on = Exists(Consensus.objects.filter(query=OuterRef("pk")))
    # One statement for each table: numbers that are compared must come from the same moment.
    asked = Query.objects.filter(project=project).aggregate(
        open=Count("pk", filter=Q(state=QueryState.OPEN)),
        disputed=Count("pk", filter=Q(state=QueryState.DISPUTED)),
        unagreed=Count("pk", filter=Q(state__in=GIVEN_UP, round_number__isnull=False) & ~Q(agreed_on)),
    )
    answered = Consensus.objects.filter(project=project).aggregate(
        agreed=Count("pk"), unused=Count("pk", filter=Q(pk__gt=project.labels_used_through))
    )
    newest = TrainingRun.objects.filter(project=project).order_by("-created_at").first()
    again = Round.objects.filter(project=project, strategy=Selection.REPEAT_VOTES, state=WorkState.DONE)
    asked_again = again.aggregate(questions=Sum("selected", default=0))["questions"]
    done_before = 0
    if newest is not None:
        earlier = again.filter(finished_at__lte=newest.created_at)
        done_before = newest.labels_used + newest.unagreed
        done_before += earlier.aggregate(questions=Sum("selected", default=0))["questions"]
    return QuestionCounts(**asked, **answered, asked_again=asked_again, done_before=done_before)


def training_account(project: Project) -> BudgetAccount:
    """Return the account that pays for training: in a crowd project the labellers', else the pool's."""
    return project.labels_account or project.pool_account


def training_event(project: Project) -> Event:
    if records.labels_in_secret(project):
        return _next_secret_event(project)
    if (paid_once := answers.next_event(project)) is not None:
        return paid_once
    featurizer = featurizer_of(project)
    estimator = release_estimator_of(project, featurizer, later=newest_release(project) is not None)
    return charged_event(project, estimator.event_for(featurizer.dimension))


def training_price(project: Project) -> Cost:
    """Return what the next training is charged."""
    account = training_account(project)
    return as_it_counts(account, training_event(project).cost(adjacency=adjacency_of(account)))


def _next_secret_event(project: Project) -> Event:
    current = records.current_block(project)
    number = current.block if current is not None else records.next_block(project)
    # Where all blocks are used no training will come, and the last one's price stands for it.
    return records.release_event(project, block=number or records.n_blocks(project))


def next_strategy(project: Project) -> str:
    """Return what chooses the next round: chance, until a model is released or public examples start one."""
    newest = newest_release(project)
    if answers.asks_again(project, newest) and can_score(project, newest):
        return Selection.REPEAT_VOTES
    strategy = strategy_of(project, project.selection)
    return strategy.name if not strategy.needs_model or can_score(project, newest) else Selection.RANDOM


def can_score(project: Project, newest: ModelRelease | None) -> bool:
    return newest is not None or start_of(project) is not None


def start_of(project: Project) -> Dataset | None:
    """Return the upload that starts the first model: a private one that is paid for or can be, else a public one."""
    charged = records.charged_start(project)
    if charged is not None and charged.account is not None:
        if WarmStart.objects.filter(dataset=charged).exists():
            return charged
        # What learns from questions alone trains nothing on private rows, so a start that waits is left alone.
        if not answers.learns_from_questions(project) and can_pay(charged.account, [start_event(project)]):
            return charged
    return records.start_datasets(project).last()


def start_event(project: Project) -> Event:
    if answers.learns_from_questions(project):
        raise UnsoundCombination("Models from randomised answers only take no private start.")
    featurizer = featurizer_of(project)
    return estimator_of(project, featurizer).event_for(featurizer.dimension)


def start_entries(project: Project) -> list[LedgerEntry]:
    """Return the committed entry of the private start, which all that came after it descends from."""
    paid = WarmStart.objects.filter(dataset__project=project, entry__isnull=False)
    return [start.entry for start in paid.select_related("entry__account", "entry__parent") if start.entry is not None]
