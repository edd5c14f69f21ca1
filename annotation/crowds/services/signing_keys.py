"""The keys that a platform signs who it sends with: fetched by a worker while a link asks for signatures."""

import logging
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from annotation.crowds.prolific import PlatformFault, Prolific
from annotation.models.joining import CrowdLink, Platform, PlatformKeys

logger = logging.getLogger(__name__)
# Twice as often as the platform asks for.
AGE: Final = timedelta(hours=12)
# Whatever is wanted, it is not asked more often than so.
PAUSE: Final = timedelta(minutes=1)


def fetch_due_keys() -> None:
    """Fetch the keys if a live link needs them and they are missing, old, or lack one that was named."""
    if not settings.PROLIFIC_URL or not CrowdLink.objects.filter(signed=True, expires_at__gt=Now()).exists():
        return
    row, _new = PlatformKeys.objects.get_or_create(platform=Platform.PROLIFIC)
    due = Q(fetched_at=None) | Q(is_wanted=True) | Q(fetched_at__lte=Now() - AGE)
    free = Q(asked_at=None) | Q(asked_at__lte=Now() - PAUSE)
    if not PlatformKeys.objects.filter(due, free, pk=row.pk).update(asked_at=Now()):
        return
    try:
        keys = Prolific().signing_keys()
    except PlatformFault as fault:
        # Those before stay, and are believed for a while.
        logger.warning("keys of %s not fetched: %s", row.platform, fault)
        return
    PlatformKeys.objects.filter(pk=row.pk).update(keys=keys, fetched_at=Now(), is_wanted=False)
