"""The keys of pseudonyms: the site's own, and for each registered table one that is derived for it alone."""

import hashlib
import hmac

from django.conf import settings

from annotation.tables.pseudonyms import Pseudonyms

TABLE = b"contributors of a registered table\0"


def site_pseudonyms() -> Pseudonyms:
    """Return the pseudonyms of people whose rows this site keeps."""
    return Pseudonyms(_site_key())


def table_key(secret: bytes) -> bytes:
    """Return the key of one registration: whoever has it learns neither the site's key nor that of another one.

    Parameters
    ----------
    secret : bytes
        Of the registration.
    """
    return hmac.digest(_site_key(), TABLE + secret, "sha256")


def _site_key() -> bytes:
    return hashlib.sha256(settings.PSEUDONYM_KEY.encode()).digest()
