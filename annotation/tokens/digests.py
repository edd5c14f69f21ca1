"""What is kept of a secret: a digest of one that comes back to us, a sealed text of one that we must send on."""

import base64
import hashlib

from cryptography.fernet import Fernet
from django.conf import settings


def secret_digest(secret: str) -> str:
    """Return what such a secret is looked up by; it is made of random bits, so there is nothing to guess."""
    return hashlib.sha256(secret.encode()).hexdigest()


def sealer(purpose: bytes) -> Fernet:
    """Return what seals secrets of one purpose, under a key that is not in the database and never changes."""
    key = hashlib.blake2b(purpose, key=settings.PSEUDONYM_KEY.encode()[:64], digest_size=32).digest()
    return Fernet(base64.urlsafe_b64encode(key))
