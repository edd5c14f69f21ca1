"""Idempotency keys of attempts: what ties a ledger entry to the work it was reserved for."""

from uuid import NAMESPACE_URL, UUID, uuid5

from learner.models import Round, Stream, TrainingRun
from learner.models.answers import AnswerSeries


def attempt_key(row: Round | TrainingRun | Stream | AnswerSeries, attempt: int, *, part: str = "") -> UUID:
    """Return the idempotency key of one attempt: the next one draws new noise, so it pays anew."""
    return uuid5(NAMESPACE_URL, f"dpal:{row._meta.model_name}:{row.pk}:{attempt}:{part}")
