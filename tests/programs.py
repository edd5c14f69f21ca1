"""A program that asks by REST with a token of a person's."""

import json
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from annotation.models import Project
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope


class Program:
    def __init__(self, person: User, project: Project, *scopes: Scope) -> None:
        held = list(scopes or Scope)
        _, secret = tokens.create_token(user=person, name="t", scopes=held, lifetime=timedelta(days=1))
        self.client = Client(headers={"Authorization": f"Bearer {secret}"})
        self.base = f"/api/v1/projects/{project.slug}"

    def __call__(self, method: str, path: str, body: Any = None, *, key: str = "") -> Any:
        headers = {"Idempotency-Key": key} if key else {}
        sent = {} if body is None else {"data": json.dumps(body), "content_type": "application/json"}
        return self.client.generic(method, f"{self.base}/{path}", headers=headers, **sent)
