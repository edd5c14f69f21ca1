"""The issuer behind a login: what it says of itself, of its keys and of a person, each compared with the rest."""

import hashlib
from typing import Any

import jwt
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.db.models import TextChoices
from django.http import HttpRequest
from requests import RequestException

# Signatures by a private key that only the issuer has; never `none`, never our own client's secret.
ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
LEEWAY_SECONDS = 60
SUBJECT_CHARACTERS = 191


class Reason(TextChoices):
    # For whoever runs the site or the issuer, so in English.
    UNREACHABLE = "unreachable", "it does not answer, or answers wrongly"
    DOCUMENT = "document", "its description is incomplete"
    ISSUER = "issuer", "its address differs from the one this site trusts"
    TOKEN = "token", "its statement cannot be read"
    SIGNATURE = "signature", "its statement is not signed with its keys"
    AUDIENCE = "audience", "its statement is for another site"
    EXPIRED = "expired", "its statement has expired or is not yet valid"
    NONCE = "nonce", "its statement belongs to another login"
    PERSON = "person", "its statement names two different persons"


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


WELL_KNOWN = "/.well-known/openid-configuration"
NEEDED = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class IssuerAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    _described: dict[str, Any] | None = None
    _nonce = ""

    @property
    def openid_config(self) -> dict[str, Any]:
        if self._described is None:
            provider = self.get_provider()
            described = ask_issuer(provider.server_url) | provider.app.settings.get(
                "openid_configuration_overrides", {}
            )
            self._described = sound_description(
                described, issuer=provider.app.settings["server_url"].split(WELL_KNOWN)[0]
            )
        return self._described

    def get_access_token_data(
        self, request: HttpRequest, app: SocialApp, client: object, pkce_code_verifier: str
    ) -> dict[str, Any]:
        """Exchange a code that this issuer gave (RFC 9207), and keep what its token must answer to."""
        described = self.openid_config
        required = described.get("authorization_response_iss_parameter_supported") is True
        if request.GET.get("iss", None if required else described["issuer"]) != described["issuer"]:
            raise IssuerRefused(Reason.ISSUER)
        self._nonce = nonce_of(pkce_code_verifier)
        data: dict[str, Any] = super().get_access_token_data(request, app, client, pkce_code_verifier)
        return data

    def complete_login(self, request: HttpRequest, app: SocialApp, token: SocialToken, **kwargs: Any) -> SocialLogin:
        described = self.openid_config
        claims = read_claims(
            kwargs["response"].get("id_token"),
            keys=ask_issuer(described["jwks_uri"]),
            issuer=described["issuer"],
            client_id=app.client_id,
            nonce=self._nonce,
        )
        source, person = "id_token", claims
        if "userinfo_endpoint" in described and app.settings.get("fetch_userinfo", True):
            source, person = "userinfo", ask_issuer(described["userinfo_endpoint"], bearer=token.token)
            if person.get("sub") != claims["sub"]:
                raise IssuerRefused(Reason.PERSON)
        # Some issuers write it as a word, and every word would be true.
        person["email_verified"] = person.get("email_verified") in (True, "true")
        return self.get_provider().sociallogin_from_response(request, {source: person})


def ask_issuer(url: str, *, bearer: str = "") -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
    try:
        with get_adapter().get_requests_session() as session:
            answer = session.get(url, headers=headers, allow_redirects=False)
            answer.raise_for_status()
            found = answer.json()
    except RequestException as error:
        raise IssuerRefused(Reason.UNREACHABLE) from error
    if not isinstance(found, dict):
        raise IssuerRefused(Reason.DOCUMENT)
    return found


def sound_description(described: dict[str, Any], *, issuer: str) -> dict[str, Any]:
    # Whoever serves another issuer's name could have codes and tokens of that one sent to themselves.
    if described.get("issuer") != issuer:
        raise IssuerRefused(Reason.ISSUER)
    asked = [name for name in (*NEEDED, "userinfo_endpoint") if name in NEEDED or name in described]
    schemes = ("https://",) if issuer.startswith("https://") else ("https://", "http://")
    if not all(str(described.get(name)).startswith(schemes) for name in asked):
        raise IssuerRefused(Reason.DOCUMENT)
    return described
