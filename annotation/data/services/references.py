"""What a project remembers of whom it has forgotten: a keyed digest, equal for one person, meaningless to others."""

import hashlib

from django.conf import settings

from annotation.models import Project


def reference_of(*, project: Project, contributor: bytes) -> str:
    """Return what a request is remembered by; it differs between projects, and means nothing without the site's key."""
    key = hashlib.sha256(settings.PSEUDONYM_KEY.encode()).digest()
    return hashlib.blake2b(
        b"%d\0%b" % (project.pk, contributor), key=key, person=b"forgetting", digest_size=16
    ).hexdigest()
