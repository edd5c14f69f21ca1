"""Prices of rounds, and when further labels stop paying."""

from typing import Literal

from annotation.budget.label_budget import questions_left
from annotation.models import Oracle, Project, Selection
from learner.models import Round
from learner.pools import answers, records
from learner.pools.configuration import secret_sample_of, strategy_choice_of, strategy_of
from learner.pools.selectors import next_strategy
from privacy.accounting.cost import Cost
from privacy.accounting.event import Event
from privacy.ledger.models import EntryKind, LedgerEntry
from privacy.ledger.rules import adjacency_of
from privacy.ledger.selectors import as_it_counts


def coming_round(project: Project) -> Round:
    """Return the round that would be opened now, as far as its price depends on it; it is not stored."""
    if records.labels_in_secret(project):
        # Where all blocks are used none will come, and the last one's price stands for it.
        block = records.next_block(project) or records.n_blocks(project)
        return Round(project=project, strategy=project.selection, block=block)
    strategy = next_strategy(project)
    again = strategy == Selection.REPEAT_VOTES
    affordable = answers.affordable_repeats(project) if again else questions_left(project)
    requested = project.round_size if affordable is None else min(project.round_size, affordable)
    return Round(project=project, strategy=strategy, requested=requested)


def round_event(chosen: Round, *, left: int) -> Event:
    if chosen.block is not None:
        return secret_sample_of(chosen.project, block=chosen.block).event_for(pool_size=0, picks=0, series="single")
    return strategy_of(chosen.project, chosen.strategy).event_for(
        pool_size=left, picks=min(chosen.requested, left), series=round_series(chosen.project)
    )


def next_round_event(project: Project, *, before_upload: bool = False) -> Event:
    """Return the event of the round a trusted project would choose now, or of the dearest after an upload."""
    coming = coming_round(project)
    if coming.block is not None:
        return round_event(coming, left=0)
    # Where nothing is left, or wanted, no round comes before there is.
    coming.requested = max(1, coming.requested)
    left = max(coming.requested if before_upload else 1, records.records_left(project))
    return round_event(coming, left=left)


def round_price(project: Project, *, before_upload: bool = False) -> Cost | None:
    if project.oracle == Oracle.CROWD:
        return None
    adjacency = adjacency_of(project.pool_account)
    whole = next_round_event(project, before_upload=before_upload).cost(adjacency=adjacency)
    return as_it_counts(project.pool_account, whole)


def round_series(project: Project) -> Literal["opened", "continued"]:
    """Say whether an earlier round has paid for what its series exposes of each record.

    An attempt that died has shown what it drew, for all the ledger knows: a screen's coins come on top of the looks
    that are counted, and what top-c picked is still in the pool and may be picked once more. So the next attempt pays
    for a series of its own.
    """
    choice = strategy_choice_of(project)
    series: tuple[Literal["opened", "continued"], ...] = ("opened", "continued")
    kinds = {choice.event(pool_size=1, picks=1, series=each).kind for each in series}
    rounds = LedgerEntry.objects.filter(account=project.pool_account, kind=EntryKind.RESERVE, mechanism__in=kinds)
    last = rounds.exclude(children__kind=EntryKind.VOID).order_by("-sequence").first()
    whole = last is not None and last.children.filter(kind=EntryKind.COMMIT).exists()
    return "continued" if whole else "opened"
