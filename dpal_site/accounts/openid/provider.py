"""Sign-in by OpenID Connect, in the place of the library's own provider: each login has a nonce and PKCE."""

from typing import Any

from allauth.socialaccount.providers.oauth2.utils import generate_code_challenge
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from django.http import HttpRequest

from dpal_site.accounts.openid.issuer import IssuerAdapter, nonce_of


class IssuerProvider(OpenIDConnectProvider):  # type: ignore[misc]
    oauth2_adapter_class = IssuerAdapter
    # People come through their browser; a token alone, from wherever, opens nothing.
    supports_token_authentication = False

    def wk_server_url(self, url: str) -> str:
        """Return where an issuer's document is: an ending slash belongs to its name alone (Discovery 1.0, 4.1)."""
        address: str = super().wk_server_url(url.rstrip("/"))
        return address

    def get_pkce_params(self) -> dict[str, str]:
        params: dict[str, str] = generate_code_challenge()
        return params | {"nonce": nonce_of(params["code_verifier"])}

    def get_auth_params_from_request(self, request: HttpRequest, action: str) -> dict[str, Any]:
        """Take nothing from the address: it could name another place to send the code to."""
        params: dict[str, Any] = self.get_auth_params()
        return params

    def get_scope_from_request(self, request: HttpRequest) -> list[str]:
        scope: list[str] = self.get_scope()
        return scope


provider_classes = [IssuerProvider]
