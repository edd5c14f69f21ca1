"""Django test clients of somebody: a browser that is logged in, and a program with a token."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from annotation.work.services import tokens
from annotation.work.services.tokens import Scope

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext


def browser_of(person: User, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(person)
    return client


def program_of(person: User, *scopes: Scope | str) -> Client:
    """Return a client with a token of these scopes, or of all."""
    held = [Scope(scope) for scope in scopes or Scope]
    _token, secret = tokens.create_token(user=person, name="t", scopes=held, lifetime=timedelta(days=1))
    return Client(headers={"Authorization": f"Bearer {secret}"})


def come_in(context: "BrowserContext", person: User, url: str) -> None:
    """Let a real browser be logged in as somebody."""
    cookie = browser_of(person).cookies[settings.SESSION_COOKIE_NAME]
    context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": url}])
