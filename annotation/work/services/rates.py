"""How often something may be tried: counted in the database, so that all processes count together.

The table is unlogged: a crash of the server forgets the counts of a few minutes, and no try waits for a disk.
"""

import hashlib
import math
from datetime import timedelta

from django.db import transaction
from django.db.models import Case, F, Q, When
from django.db.models.functions import Now

from annotation.errors import TooOften
from annotation.models.joining import RateCount


def count_try(*, what: str, who: str, limit: int, seconds: int) -> None:
    # Addresses and ids are nobody's business later on; a digest counts as well.
    key = hashlib.blake2b(f"{what}\0{who}".encode(), digest_size=16).hexdigest()
    ends = Now() + timedelta(seconds=seconds)
    counts, is_over = RateCount.objects.filter(key=key), Q(ends_at__lt=Now())
    with transaction.atomic():
        # Those that count at the same time wait for one another.
        RateCount.objects.select_for_update().get_or_create(key=key, defaults={"tries": 0, "ends_at": ends})
        counts.update(
            tries=Case(When(is_over, then=1), default=F("tries") + 1),
            ends_at=Case(When(is_over, then=ends), default=F("ends_at")),
        )
        tries, left = counts.values_list("tries", F("ends_at") - Now()).get()
    refuse_beyond(limit, tries=tries, seconds_left=math.ceil(left.total_seconds()))


def refuse_beyond(limit: int, *, tries: int, seconds_left: int) -> None:
    if tries > limit:
        raise TooOften(
            "This was tried too often. Wait a few minutes and try again.", retry_after_seconds=max(1, seconds_left)
        )


def forget_old_tries() -> int:
    """Delete the counts of windows that are over; return how many."""
    return RateCount.objects.filter(ends_at__lt=Now()).delete()[0]
