"""The pictures of README and manual: `make screenshots` keeps them, any other run only sees that they can be taken."""

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from PIL import Image

from annotation.data.services import drafts
from annotation.models import Membership, Role
from annotation.projects.forms.wizard import WizardStep
from annotation.projects.services import opening
from dpal_site.embedded.processes import Supervisor
from tests import learning
from tests.factories import make_user

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
DESK = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 780}
TALL = {"width": 1280, "height": 1500}
# The pages are flat; more colours would only make the files larger.
COLOURS = 128
LARGEST_BYTES = 120_000
POOL = 400
FILE = b"""Message,label,from
my plum tree has brown leaves,fruit,ada
,tool,ben
the drill does not turn,tool,cleo
is this pear ripe,vegetable,dan
which saw for oak,tool,eva
"""


def keep(picture: bytes, path: Path) -> int:
    """Store a picture small and return its size in bytes."""
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS).save(path, optimize=True)
    return path.stat().st_size


def fill_wizard(page: "Page", address: str) -> None:
    """Take the step of a new project that has no defaults."""
    page.goto(address)
    page.fill("[name=name]", "Support messages")
    page.fill("[name=question]", "Is this about a fruit or about a tool?")
    page.fill("[name=classes]", "fruit\ntool")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("heading", name="What is asked").wait_for()


def test_pictures(page: "Page", live_site: Supervisor, tmp_path: Path) -> None:
    folder = Path(os.environ.get("DPAL_SCREENSHOTS") or tmp_path)
    manager = make_user("ada")
    manager.user_permissions.add(Permission.objects.get(codename="add_project"))
    # A release as the preset ships, and questions that wait for the next.
    task = {"question": "Is this about a fruit or about a tool?", "classes": learning.CLASSES, "data_kind": "text"}
    task |= {"preset": "pool-experts", "owner": manager}
    project = opening.create_project(name="Support messages", **task)
    learning.fill_trusted(project, number=POOL)
    learning.run_to_release(project, make_user("grace"), version=1)
    learning.work_off(project)
    # As many labels chosen by chance in the open, and the same limit.
    labels = POOL * 4 // 10
    by_chance = {"selection": "random", "round_size": labels, "labels_per_release": labels, "maximum_releases": 2}
    companion = opening.create_project(name="Support messages, random choice", **task, **by_chance)
    learning.fill_trusted(companion, number=POOL)
    learning.run_to_release(companion, make_user("linus"), version=2)
    project.refresh_from_db()
    opening.compare_with(project=project, other=companion)
    draft = drafts.keep_draft(
        project=project,
        file=SimpleUploadedFile("messages.csv", FILE),
        name="messages.csv",
        role="public_test",
        bad_rows="keep_good",
        owner=manager,
    )
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
        "dashboard": (reverse("learner:dashboard", args=[project.slug]), TALL, "light"),
        "dashboard-phone": (reverse("learner:dashboard", args=[project.slug]), PHONE, "dark"),
        "preview": (reverse("annotation:preview", args=[project.slug, draft.pk]), DESK, "light"),
        **{
            f"wizard-{step}": (reverse("annotation:wizard", args=["pool-experts", step]), DESK, "light")
            for step in (WizardStep.PROTECTION, WizardStep.QUESTIONS, WizardStep.BUDGET, WizardStep.CHECK)
        },
    }
    fill_wizard(page, live_site.url + reverse("annotation:wizard", args=["pool-experts", WizardStep.TASK]))
    for name, (address, size, scheme) in wanted.items():
        page.set_viewport_size(size)  # type: ignore[arg-type]
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        page.goto(live_site.url + address, wait_until="networkidle")
        assert 5_000 < keep(page.screenshot(), folder / f"{name}.png") < LARGEST_BYTES, name
