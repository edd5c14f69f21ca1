"""Somebody who calls the REST interface with a token of every scope."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from annotation.work.services import tokens
from annotation.work.services.tokens import Scope


class Caller:
    """A program with a person's token; addresses are those below `/api/v1/`."""

    def __init__(self, person: User) -> None:
        _token, secret = tokens.create_token(user=person, name="t", scopes=list(Scope), lifetime=timedelta(days=1))
        self.client = Client(headers={"Authorization": f"Bearer {secret}"})

    def get(self, address: str, **chosen: Any) -> Any:
        return self.client.get(f"/api/v1/{address}", chosen)

    def post(self, address: str, body: Mapping[str, Any] | None = None, key: str = "") -> Any:
        headers = {"Idempotency-Key": key} if key else {}
        return self.client.post(
            f"/api/v1/{address}", json.dumps(body or {}), content_type="application/json", headers=headers
        )

    def patch(self, address: str, body: Mapping[str, Any]) -> Any:
        return self.client.patch(f"/api/v1/{address}", json.dumps(body), content_type="application/json")

    def delete(self, address: str) -> Any:
        return self.client.delete(f"/api/v1/{address}")
