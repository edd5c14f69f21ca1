"""Links for crowd platforms: an account for each participant, and a code when they are done."""

import hashlib
import secrets
from collections.abc import Mapping
from datetime import timedelta
from hmac import compare_digest
from typing import Any, Final
from urllib.parse import urlsplit

import jwt
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from annotation import access
from annotation.errors import ArrivalRefused, ArrivalUnchecked, InvalidConfiguration, LinkEnded
from annotation.models import Oracle, Project, Role
from annotation.models.joining import CrowdLink, CrowdParticipant, Platform, PlatformKeys
from annotation.people.services import members
from annotation.work.services.tokens import secret_digest
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
TOO_OLD: Final = as_message("This address has expired. Open the study from Prolific again.")
OTHER_SITE: Final = as_message("Prolific signed this for another site.")
NO_KEYS_YET: Final = as_message("Prolific's keys are not here yet. Load this page again in a minute.")


def signing_hindrance(platform: str) -> Message | None:
    """Say why a link cannot ask for signed parameters; nothing where it can."""
    if platform != Platform.PROLIFIC:
        return as_message("Only Prolific signs who it sends.")
    # A setting of the add-on that fetches the keys.
    if not getattr(settings, "PROLIFIC_URL", ""):
        return as_message("No administrator has set the address of Prolific's keys.")
    return None


def believed(*, token: str, sent: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters that Prolific signed.

    `ArrivalRefused` if the token is missing, forged, expired or about anything else; `ArrivalUnchecked` if its key is
    not here yet.
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
        raise ArrivalRefused(NOT_SIGNED)
    if any(value and value != signed[name] for name, value in sent.items()):
        raise ArrivalRefused(NOT_SIGNED)
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
    except jwt.PyJWTError:
        refusal = NOT_SIGNED
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


ENDED = as_message("This study is not open, or not any more. Please return it on the platform.")
CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"


def create_link(
    *,
    project: Project,
    platform: str,
    study: str,
    answers_wanted: int,
    maximum_participants: int,
    lifetime: timedelta,
    owner: User,
    token: str = "",
    signed: bool = False,
) -> tuple[CrowdLink, str]:
    """Make a link, and return it with its token, which is kept nowhere; whoever comes by it is a stranger."""
    if project.oracle != Oracle.CROWD:
        raise InvalidConfiguration("This project shows private records, so it has no crowd links.")
    if signed and (hindrance := signing_hindrance(platform)):
        raise InvalidConfiguration(hindrance)
    token = token or secrets.token_urlsafe(24)
    link = CrowdLink.objects.create(
        project=project,
        digest=secret_digest(token),
        platform=platform,
        study=study,
        answers_wanted=answers_wanted,
        completion_code="".join(secrets.choice(CODE_LETTERS) for _ in range(8)),
        maximum_participants=maximum_participants,
        expires_at=timezone.now() + lifetime,
        signed=signed,
        created_by=owner,
    )
    return link, token


def revoke_link(*, link: CrowdLink) -> None:
    CrowdLink.objects.filter(pk=link.pk, revoked_at=None).update(revoked_at=Now())


def find_link(*, token: str) -> CrowdLink:
    link = CrowdLink.objects.select_related("project").filter(digest=secret_digest(token)).first()
    if link is None or link.project.oracle != Oracle.CROWD or link.project.state in access.CLOSED:
        raise LinkEnded(ENDED)
    return link


def read_arrival(*, link: CrowdLink, sent: Mapping[str, str], study: str, signature: str) -> Mapping[str, str]:
    """Return what the platform says of whoever it sends, if it is for the link's study and, where asked for, signed."""
    parameters = believed(token=signature, sent=sent) if link.signed else sent
    if link.study and not compare_digest(link.study.encode(), parameters[study].encode()):
        raise LinkEnded(ENDED)
    return parameters


def join(*, link: CrowdLink, pid: str) -> CrowdParticipant:
    """Return the participant with this platform id, a new one with an account where they are new to the project."""
    digest = _digest(link, pid)
    with transaction.atomic():
        # One after another, so that the last place is given once.
        link = CrowdLink.objects.select_for_update().get(pk=link.pk)
        known = CrowdParticipant.objects.select_related("user").filter(link__project=link.project_id, pid_digest=digest)
        here = known.filter(link=link).first()
        if here is not None:
            return here
        full = link.participants.count() >= link.maximum_participants
        if full or link.revoked_at is not None or link.expires_at <= timezone.now():
            raise LinkEnded(ENDED)
        earlier = known.first()
        user = earlier.user if earlier else _new_account(link.project)
        return CrowdParticipant.objects.create(link=link, user=user, pid_digest=digest)


def _new_account(project: Project) -> User:
    user = User.objects.create_user(username=f"participant-{secrets.token_hex(6)}")
    members.add_member(project=project, user=user, role=Role.ANNOTATOR)
    return user


def pid_digest(*, project: Project, platform: str, pid: str) -> bytes:
    """Return what is kept of a platform's id: a keyed hash that differs between projects."""
    return hashlib.blake2b(
        f"{platform}\0{project.pk}\0{pid}".encode(),
        key=settings.PSEUDONYM_KEY.encode()[:64],
        person=b"crowd pid",
        digest_size=16,
    ).digest()


def _digest(link: CrowdLink, pid: str) -> bytes:
    return pid_digest(project=link.project, platform=link.platform, pid=pid)
