"""Keys of pseudonyms and of references to people who were forgotten."""

import hashlib
import hmac

from django.conf import settings

from annotation.data.readers.pseudonyms import Pseudonyms
from annotation.models import Project

TABLE = b"contributors of a registered table\0"


def site_pseudonyms() -> Pseudonyms:
    return Pseudonyms(_site_key())


def table_key(secret: bytes) -> bytes:
    """Return the key of one registration, which tells neither the site's key nor that of another one."""
    return hmac.digest(_site_key(), TABLE + secret, "sha256")


def _site_key() -> bytes:
    return hashlib.sha256(settings.PSEUDONYM_KEY.encode()).digest()


def reference_of(*, project: Project, contributor: bytes) -> str:
    """Return what a request is remembered by; it differs between projects, and means nothing without the site's key."""
    key = hashlib.sha256(settings.PSEUDONYM_KEY.encode()).digest()
    return hashlib.blake2b(
        b"%d\0%b" % (project.pk, contributor), key=key, person=b"forgetting", digest_size=16
    ).hexdigest()
