"""Open what a storm works on, and print as JSON where it is and the tokens to reach it."""

import json
import sys
from datetime import timedelta
from itertools import count
from typing import Any

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402 - needs the line above

from annotation.models import Dataset, Membership, Project, Role  # noqa: E402
from annotation.work.services import tokens  # noqa: E402
from annotation.work.services.tokens import Scope  # noqa: E402
from tests import learning, streaming  # noqa: E402
from tests.faults.storm.load import TESTED_ROWS, TESTED_SEED  # noqa: E402

MANY = 10_000
_numbers = count(1)


def _person(project: Project, role: Role) -> str:
    user = User.objects.create_user(username=f"storm-{next(_numbers)}")
    Membership.objects.create(project=project, user=user, role=role)
    token, secret = tokens.create_token(
        user=user, name="storm", scopes=[scope.value for scope in Scope], lifetime=timedelta(days=1)
    )
    assert token.pk
    return secret


def _shown(project: Project, annotators: int) -> dict[str, Any]:
    manager = _person(project, Role.MANAGER)
    return {
        "id": project.pk,
        "slug": project.slug,
        "manager": manager,
        "annotators": [_person(project, Role.ANNOTATOR) for _ in range(annotators)],
    }


def open_projects(*, annotators: int = 3) -> dict[str, Any]:
    """Open one project of each kind: experts over a pool or a stream, a crowd behind a gate of uploads or of tables."""
    owner = User.objects.create_user(username="storm-owner")
    experts = learning.open_trusted(
        owner, maximum_releases=MANY, pool_epsilon=100_000.0, training_epsilon=1.0, overlap=1
    )
    learning.upload(experts, [[text] for text in learning.sentences(200)], ["text"])
    tested = [
        [text, learning.CLASSES[learning.truth_of(text)]] for text in learning.sentences(TESTED_ROWS, seed=TESTED_SEED)
    ]
    learning.upload(experts, tested, ["text", "label"], role="public_test")
    crowd = learning.open_crowd(
        owner, maximum_releases=MANY, pool_epsilon=1_000.0, pool_delta=0.9, labels_epsilon=100_000.0, overlap=2
    )
    learning.fill_crowd(crowd, texts=30, speakers=40)
    # A registered table stands beside no data of another role.
    tables = learning.open_crowd(owner, maximum_releases=MANY, pool_epsilon=1_000.0, pool_delta=0.9)
    stream = streaming.open_stream(owner, selection="all", maximum_releases=MANY, window_length=5, windows_ahead=3)
    # A crowd's question wants two people.
    return {
        "experts": _shown(experts, annotators),
        "crowd": _shown(crowd, max(2, annotators)),
        "tables": _shown(tables, 0),
        "stream": _shown(stream, 1),
        "staged": Dataset.objects.exclude(name="stream").count(),
    }


if __name__ == "__main__":
    json.dump(open_projects(), sys.stdout)
