"""Claims of an ID token after every check that OpenID Connect Core 3.1.3.7 asks for."""

import hashlib
from typing import Any

import jwt
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

# Signatures by a private key that only the issuer has; never `none`, never our own client's secret.
ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
LEEWAY_SECONDS = 60
SUBJECT_CHARACTERS = 191


class Reason(TextChoices):
    UNREACHABLE = "unreachable", _("it does not answer, or not with what this site asked for")
    DOCUMENT = "document", _("its description of itself is not complete")
    ISSUER = "issuer", _("it calls itself by another address than the one this site trusts")
    TOKEN = "token", _("it sent no statement about you that can be read")
    SIGNATURE = "signature", _("its statement about you is not signed with one of its keys")
    AUDIENCE = "audience", _("its statement about you was made for another site")
    EXPIRED = "expired", _("its statement about you holds no longer, or not yet")
    NONCE = "nonce", _("its statement about you belongs to another login than this one")
    PERSON = "person", _("it speaks of one person in its statement and of another one besides")


class IssuerRefused(OAuth2Error):  # type: ignore[misc]
    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason, self.sentence = reason.value, reason.label


def nonce_of(code_verifier: str) -> str:
    """Return what a login's ID token must carry: drawn from a secret of the session, which it does not tell."""
    return hashlib.sha256(b"nonce of an ID token\0" + code_verifier.encode()).hexdigest()


def read_claims(token: object, *, keys: object, issuer: str, client_id: str, nonce: str) -> dict[str, Any]:
    if not isinstance(token, str):
        raise IssuerRefused(Reason.TOKEN)
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            key=_key_of(token, keys),
            audience=client_id,
            issuer=issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": ["iss", "sub", "aud", "exp", "iat"], "enforce_minimum_key_length": True},
        )
    except (jwt.ExpiredSignatureError, jwt.ImmatureSignatureError) as error:
        raise IssuerRefused(Reason.EXPIRED) from error
    except jwt.InvalidAudienceError as error:
        raise IssuerRefused(Reason.AUDIENCE) from error
    except jwt.InvalidIssuerError as error:
        raise IssuerRefused(Reason.ISSUER) from error
    except (jwt.InvalidSignatureError, jwt.InvalidAlgorithmError, jwt.InvalidKeyError) as error:
        raise IssuerRefused(Reason.SIGNATURE) from error
    except jwt.PyJWTError as error:
        raise IssuerRefused(Reason.TOKEN) from error
    # Of several sites a token is for, it names the one that asked.
    alone = claims["aud"] in (client_id, [client_id])
    if claims.get("azp", client_id if alone else None) != client_id:
        raise IssuerRefused(Reason.AUDIENCE)
    if claims.get("nonce") != nonce:
        raise IssuerRefused(Reason.NONCE)
    subject = claims["sub"]
    if not (0 < len(subject) <= SUBJECT_CHARACTERS and subject.isascii() and subject.isprintable()):
        raise IssuerRefused(Reason.TOKEN)
    return claims


def _key_of(token: str, keys: object) -> jwt.PyJWK:
    header = jwt.get_unverified_header(token)
    known = keys.get("keys") if isinstance(keys, dict) else None
    if not isinstance(known, list):
        raise IssuerRefused(Reason.DOCUMENT)
    fitting = [key for key in known if isinstance(key, dict) and key.get("use", "sig") == "sig"]
    if "kid" in header:
        fitting = [key for key in fitting if key.get("kid") == header["kid"]]
    if header.get("alg") not in ALGORITHMS or len(fitting) != 1:
        raise IssuerRefused(Reason.SIGNATURE)
    try:
        # A key that says what it is for is used for nothing else.
        return jwt.PyJWK(fitting[0], algorithm=fitting[0].get("alg") or header["alg"])
    except (jwt.PyJWTError, KeyError, TypeError, ValueError) as error:
        raise IssuerRefused(Reason.SIGNATURE) from error
