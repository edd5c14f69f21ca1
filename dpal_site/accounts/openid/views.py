"""The two addresses of a login through an issuer: the way there, and the way back."""

from allauth.socialaccount.helpers import render_authentication_error
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView, OAuth2View
from django.http import Http404, HttpRequest, HttpResponse

from dpal_site.accounts.openid.issuer import IssuerAdapter, IssuerRefused


def login(request: HttpRequest, provider_id: str) -> HttpResponse:
    return _answer(OAuth2LoginView, request, provider_id)


def callback(request: HttpRequest, provider_id: str) -> HttpResponse:
    return _answer(OAuth2CallbackView, request, provider_id)


def _answer(kind: type[OAuth2View], request: HttpRequest, provider_id: str) -> HttpResponse:
    adapter = IssuerAdapter(request, provider_id)
    try:
        response: HttpResponse = kind.adapter_view(adapter)(request)
    except SocialApp.DoesNotExist as error:
        raise Http404 from error
    except IssuerRefused as error:
        # The library answers by itself only for what goes wrong after a code came.
        response = render_authentication_error(request, adapter.get_provider(), exception=error)
    return response
