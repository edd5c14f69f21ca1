"""Refusals of the database, by the name of the rule that is broken."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import IntegrityError, transaction


@contextmanager
def refused(rule: str) -> Iterator[None]:
    """Have the database refuse the block by this rule; the transaction around it goes on."""
    # A COPY's errors reach us as psycopg's own.
    with pytest.raises((IntegrityError, psycopg.IntegrityError)) as caught, transaction.atomic():
        yield
    cause = caught.value.__cause__ if isinstance(caught.value, IntegrityError) else caught.value
    assert isinstance(cause, psycopg.IntegrityError)
    assert cause.diag.constraint_name == rule
