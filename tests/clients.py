"""Django test clients of somebody: a browser that is logged in, and a program with a token."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from annotation.work.services import tokens
from annotation.work.services.tokens import Scope


def browser_of(person: User, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(person)
    return client


def program_of(person: User, *scopes: Scope | str) -> Client:
    """Return a client with a token of these scopes, or of all."""
    held = [Scope(scope) for scope in scopes or Scope]
    _token, secret = tokens.create_token(user=person, name="t", scopes=held, lifetime=timedelta(days=1))
    return Client(headers={"Authorization": f"Bearer {secret}"})
