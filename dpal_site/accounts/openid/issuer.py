"""The issuer behind a login: what it says of itself, of its keys and of a person, each compared with the rest."""

from typing import Any

from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.http import HttpRequest
from requests import RequestException

from dpal_site.accounts.openid.claims import IssuerRefused, Reason, nonce_of, read_claims

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
