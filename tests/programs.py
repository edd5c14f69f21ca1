"""Programs that ask by REST with a token of a person's."""

import json
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User

from annotation.models import Project
from annotation.work.services.tokens import Scope
from tests.clients import program_of


class Program:
    def __init__(self, person: User, project: Project, *scopes: Scope) -> None:
        self.client = program_of(person, *scopes)
        self.base = f"/api/v1/projects/{project.slug}"

    def __call__(self, method: str, path: str, body: Any = None, *, key: str = "") -> Any:
        headers = {"Idempotency-Key": key} if key else {}
        sent = {} if body is None else {"data": json.dumps(body), "content_type": "application/json"}
        return self.client.generic(method, f"{self.base}/{path}", headers=headers, **sent)


class Caller:
    """A program with a person's token; addresses are those below `/api/v1/`."""

    def __init__(self, person: User) -> None:
        self.client = program_of(person)

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
