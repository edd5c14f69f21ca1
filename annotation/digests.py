"""What is kept of a secret that a link or a program brings."""

import hashlib


def secret_digest(secret: str) -> str:
    """Return what such a secret is looked up by; it is made of random bits, so there is nothing to guess."""
    return hashlib.sha256(secret.encode()).hexdigest()
