"""Browsers of people, each with a context of their own."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from playwright.sync_api import Browser, Page

    from annotation.models import Project


@pytest.fixture
def enter(browser: "Browser", live_server, page_faults) -> "Iterator[Callable[..., Page]]":
    """Open a page of a project for a person; a script error fails the test."""
    from django.urls import reverse  # noqa: PLC0415  # apps are not loaded yet

    from tests.clients import come_in  # noqa: PLC0415  # as above
    from tests.factories import make_annotators  # noqa: PLC0415  # as above

    contexts = []

    def open_page(
        project: "Project", person: "User | None" = None, name: str = "annotation:label", **options: Any
    ) -> "Page":
        context = browser.new_context(**options)
        contexts.append(context)
        come_in(context, person or make_annotators(project, 1)[0], live_server.url)
        opened = context.new_page()
        opened.set_default_timeout(30_000)
        opened.on("pageerror", lambda error: page_faults.append(f"script error: {error}"))
        opened.goto(live_server.url + reverse(name, args=[project.slug]))
        return opened

    yield open_page
    for context in contexts:
        context.close()
    assert not page_faults
