"""Reserving for a choice of questions: never the last of an account, with nothing left to learn from the answers."""

from learner import next_step, selectors
from learner.models import Round
from learner.next_step import Step
from learner.work.services import attempts
from privacy.accounting.event import Event
from privacy.errors import BudgetExceeded
from privacy.models import LedgerEntry
from privacy.selectors import can_pay


def reserve_choice(chosen: Round, *, event: Event, purpose: str) -> LedgerEntry:
    """Hold what an attempt to choose questions costs, durably, before anything private is read.

    Raises
    ------
    BudgetExceeded
        If the pool's account cannot pay for the choice and for the model that the answers are for. Each attempt asks:
        one that died before it was charged as well, and may have left enough for another choice alone.
    """
    account = chosen.project.pool_account
    wanted = [event, *selectors.model_events(chosen.project)]
    if not can_pay(account, wanted):
        raise BudgetExceeded(next_step.too_little_words(account, Step.ASK))
    return attempts.reserve_attempt(chosen, account=account, event=event, purpose=purpose)
