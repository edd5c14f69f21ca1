"""Refusals of the database, by the name of the rule that is broken."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction

from privacy.ledger.entries import broken_rule


@contextmanager
def refused(rule: str) -> Iterator[None]:
    """Have the database refuse the block by this rule; the transaction around it goes on."""
    # A COPY's errors reach us as psycopg's own.
    with pytest.raises((IntegrityError, psycopg.IntegrityError)) as caught, transaction.atomic():
        yield
    cause = caught.value.__cause__ if isinstance(caught.value, IntegrityError) else caught.value
    assert isinstance(cause, psycopg.IntegrityError)
    assert cause.diag.constraint_name == rule


def hold_everything() -> None:
    """Check the rules that wait for the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def refused_late(rule: str, act: Callable[[], object]) -> None:
    """Have the database refuse, by this rule, the end of a transaction in which this is done."""

    def act_and_end() -> None:
        with transaction.atomic():
            act()
            hold_everything()

    with pytest.raises(IntegrityError) as caught:
        act_and_end()
    assert broken_rule(caught.value) == rule
