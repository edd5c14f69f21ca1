"""The pictures of README and manual: `make screenshots` keeps them, any other run only sees that they can be taken."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from annotation.models import Membership, Role
from dpal_site.embedded.processes import Supervisor
from tests import learning
from tests.factories import make_user

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
DESK = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 780}


def test_pictures(page: "Page", live_site: Supervisor, tmp_path: Path) -> None:
    folder = Path(os.environ.get("DPAL_SCREENSHOTS") or tmp_path)
    manager = make_user("ada")
    manager.user_permissions.add(Permission.objects.get(codename="add_project"))
    # Three releases, and questions that wait for the next.
    project = learning.open_trusted(manager, maximum_releases=None)
    type(project).objects.filter(pk=project.pk).update(
        name="Support messages", question="Is this about a fruit or about a tool?"
    )
    learning.fill_trusted(project, number=160)
    learning.run_to_release(project, make_user("grace"), version=3)
    learning.work_off(project)
    Membership.objects.create(project=project, user=manager, role=Role.ANNOTATOR)
    client = Client()
    client.force_login(manager)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": live_site.url}])
    wanted = {
        "label": (reverse("annotation:label", args=[project.slug]), DESK, "light"),
        "label-phone": (reverse("annotation:label", args=[project.slug]), PHONE, "dark"),
        "budget": (reverse("annotation:budget", args=[project.slug]), DESK, "light"),
        "statement": (reverse("annotation:statement", args=[project.slug]), DESK, "light"),
        "dashboard": (reverse("learner:dashboard", args=[project.slug]), {"width": 1280, "height": 1400}, "light"),
        "dashboard-phone": (reverse("learner:dashboard", args=[project.slug]), PHONE, "dark"),
        "wizard": (reverse("annotation:wizard", args=["pool-experts", "budget"]), DESK, "light"),
    }
    for name, (address, size, scheme) in wanted.items():
        page.set_viewport_size(size)  # type: ignore[arg-type]
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        page.goto(live_site.url + address, wait_until="networkidle")
        picture = page.screenshot(path=folder / f"{name}.png")
        assert len(picture) > 10_000, name
