"""What a platform signed about whom it sends: believed only by one of its keys, for this site, and for a while.

Prolific documents a token (JWT, RS256) whose claim `prolific` holds the parameters of the study's address, `aud` the
tool's domain, `exp` its end. Nothing here asks the platform: a worker keeps its keys, and a key that is not among them
makes the worker look again. No id, no token and no key is logged or put into a message.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import jwt
from django.conf import settings
from django.utils import timezone

from annotation.errors import ArrivalRefused, ArrivalUnchecked
from annotation.models.joining import Platform, PlatformKeys
from privacy.wording import Message, as_message

# In the address, beside the parameters.
TOKEN: Final = "prolific_token"  # noqa: S105 - a name
CLAIM: Final = "prolific"
ALGORITHM: Final = "RS256"
LEEWAY_SECONDS: Final = 60
LONGEST_TOKEN: Final = 8192
# Keys are fetched twice a day; what could not be fetched for so long may hold one that was withdrawn.
KEYS_LAST: Final = timedelta(days=2)
# Keys that were fetched since are all there are: whoever invents one costs no further look.
JUST_NOW: Final = timedelta(minutes=5)
PORTS: Final = {"http": 80, "https": 443}

NOT_SIGNED: Final = as_message("Prolific did not sign this address. Open the study from Prolific again.")
UNREADABLE: Final = as_message("What Prolific signed cannot be read. Open the study from Prolific again.")
NOT_BY_ITS_KEY: Final = as_message(
    "The address is not signed by a key of Prolific's. Open the study from Prolific again."
)
TOO_OLD: Final = as_message("What Prolific signed holds no longer, or not yet. Open the study from Prolific again.")
OTHER_SITE: Final = as_message("What Prolific signed is for another site than this one.")
OTHER_IDS: Final = as_message("The address does not say what Prolific signed. Open the study from Prolific again.")
NO_KEYS_YET: Final = as_message("Prolific's keys are not here yet. Load this page again in a minute.")


def signing_hindrance(platform: str) -> Message | None:
    """Say why a link cannot ask for signed parameters; nothing where it can."""
    if platform != Platform.PROLIFIC:
        return as_message("Only Prolific signs who it sends.")
    # A setting of the add-on that fetches the keys.
    if not getattr(settings, "PROLIFIC_URL", ""):
        return as_message("No administrator has named the address that Prolific's keys are fetched from.")
    return None


def believed(*, token: str, sent: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters that Prolific signed.

    Parameters
    ----------
    token : str
        As it stood in the address.
    sent : mapping of str to str
        The address's parameters by the platform's names; an empty one may be missing there, any other must be signed.

    Raises
    ------
    ArrivalRefused
        If the token is missing, forged, over, for another site, or about anybody or anything else.
    ArrivalUnchecked
        If it names a key that is not here yet.
    """
    if not token:
        raise ArrivalRefused(NOT_SIGNED)
    claims = _claims(token)
    if not is_for(claims["aud"], settings.SITE_URL):
        raise ArrivalRefused(OTHER_SITE)
    claim = claims.get(CLAIM)
    found = claim if isinstance(claim, dict) else {}
    signed = {name: value for name in sent if isinstance(value := found.get(name), str) and value}
    if len(signed) < len(sent):
        raise ArrivalRefused(UNREADABLE)
    if any(value and value != signed[name] for name, value in sent.items()):
        raise ArrivalRefused(OTHER_IDS)
    return signed


def is_for(audience: object, site: str) -> bool:
    """Say whether a claim `aud`, addresses or bare domains, names the site."""
    named = audience if isinstance(audience, list) else [audience]
    return any(isinstance(one, str) and _place(one) == _place(site) for one in named)


def _place(address: str) -> tuple[str, int] | None:
    try:
        parts = urlsplit(address if "://" in address else f"https://{address}")
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return None
    return (parts.hostname, port) if parts.hostname and port else None


def _claims(token: str) -> dict[str, Any]:
    try:
        if len(token) > LONGEST_TOKEN:
            raise jwt.DecodeError
        header = jwt.get_unverified_header(token)
        if header.get("alg") != ALGORITHM:
            raise jwt.InvalidAlgorithmError
        claims: dict[str, Any] = jwt.decode(
            token,
            key=_key(header.get("kid")),
            algorithms=[ALGORITHM],
            leeway=LEEWAY_SECONDS,
            options={"require": ["exp", "aud"], "verify_aud": False, "enforce_minimum_key_length": True},
        )
    except (jwt.ExpiredSignatureError, jwt.ImmatureSignatureError):
        refusal = TOO_OLD
    except (jwt.InvalidSignatureError, jwt.InvalidAlgorithmError, jwt.InvalidKeyError, jwt.PyJWKError):
        refusal = NOT_BY_ITS_KEY
    except jwt.PyJWTError:
        refusal = UNREADABLE
    else:
        return claims
    # Without its cause, whose words may repeat what was sent.
    raise ArrivalRefused(refusal)


def _key(key_id: object) -> jwt.PyJWK:
    known = PlatformKeys.objects.filter(platform=Platform.PROLIFIC)
    row = known.first()
    if row is None or row.fetched_at is None or row.fetched_at < timezone.now() - KEYS_LAST:
        raise ArrivalUnchecked(NO_KEYS_YET)
    fitting = [key for key in row.keys if key["kid"] == key_id]
    if len(fitting) != 1:
        if row.fetched_at > timezone.now() - JUST_NOW:
            raise jwt.InvalidKeyError
        known.filter(is_wanted=False).update(is_wanted=True)
        raise ArrivalUnchecked(NO_KEYS_YET)
    return jwt.PyJWK(fitting[0], algorithm=ALGORITHM)
