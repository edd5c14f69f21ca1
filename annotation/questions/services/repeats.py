"""Asking again: more answers to settled questions, which were chosen without a look at what was answered."""

from collections.abc import Sequence

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from annotation.errors import InvalidConfiguration
from annotation.models import Consensus, Project, Query, QueryState
from annotation.models.questions import FURTHER_ANSWERS
from annotation.questions.services.queue import PRIORITY_PER_ROUND
from privacy.wording import as_plural_message


def open_for_more_answers(*, project: Project, round_number: int, query_ids: Sequence[int]) -> None:
    """Open questions that were answered for two more answers each, in this order; all of them or, refusing, none.

    What was agreed on is taken back until the further answers are in, and then counts as a new label.
    """
    with transaction.atomic():
        answered = Query.objects.filter(
            project=project, pk__in=query_ids, state__in=(QueryState.CLOSED, QueryState.DISPUTED)
        )
        found = {query.pk: query for query in answered.select_for_update(no_key=True).order_by("pk")}
        if len(found) != len(query_ids):
            raise InvalidConfiguration(
                as_plural_message(
                    "Only {found} of {n} question was answered before.",
                    "Only {found} of {n} questions were answered before.",
                    found=len(found),
                    n=len(query_ids),
                )
            )
        Consensus.objects.filter(query__in=list(found)).delete()
        for rank, query_id in enumerate(query_ids):
            found[query_id].priority = round_number * PRIORITY_PER_ROUND + rank
        Query.objects.bulk_update(found.values(), ["priority"])
        answered.update(
            overlap=F("overlap") + FURTHER_ANSWERS,
            open_slots=F("open_slots") + FURTHER_ANSWERS,
            state=QueryState.OPEN,
            opened_at=timezone.now(),
        )
