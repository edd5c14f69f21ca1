"""The pictures of README and manual: `make screenshots` keeps them, any other run only sees that they can be taken."""

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from PIL import Image

from annotation.data.services import drafts
from annotation.models import Membership, Role
from annotation.projects.services import opening
from dpal_site.embedded.processes import Supervisor
from tests import learning, raw_files
from tests.clients import browser_of
from tests.factories import make_opener, make_user

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
DESK = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 780}
TALL = {"width": 1280, "height": 1500}
# The pages are flat; more colours would only make the files larger.
COLOURS = 128
LARGEST_BYTES = 120_000
POOL = 1_200
# Blocks of the preset, and the share of a pool they ask about.
BLOCKS, ASKED = 2, 0.8
QUESTION = "What does this customer want?"
# What customers of a bank write, by topic; each bracket is filled with one of the words below.
MESSAGES = {
    "card_arrival": [
        "I ordered my new card {when} and it still has not come.",
        "How long does a card take to {where}?",
        "Has my card been posted yet?",
        "The letter with my PIN came {when}, but nothing else.",
        "I moved to {where}, where will you send it?",
        "It should have been in my letterbox {when}.",
        "Can I track the delivery?",
    ],
    "charged_twice": [
        "I paid {shop} once and you took the money twice.",
        "There are two payments of {sum} on my statement, I made one.",
        "Why is the same coffee at {shop} there two times?",
        "{shop} says they billed me {sum} only once.",
        "One of the two has to go back.",
        "I see {sum} and again {sum} {when}.",
        "Is this a duplicate?",
    ],
    "exchange_rate": [
        "The rate you used in {where} {when} was worse than the one in the app.",
        "What do I get for {sum} in {where}?",
        "I took out cash in {where} and got too little.",
        "Do you add anything at the weekend?",
        "How many kroner is that?",
        "The conversion of {sum} looks wrong to me.",
        "When is the rate fixed, when I pay or later?",
    ],
    "lost_card": [
        "I left my card in a taxi in {where}, please block it.",
        "My wallet was stolen {when}.",
        "I have not seen my card since {shop}, can you freeze it?",
        "A cash machine in {where} kept it, what do I do now?",
        "Somebody may be using it right now.",
        "I looked everywhere {when}.",
        "Please stop all payments.",
    ],
    "top_up_failed": [
        "My top-up of {sum} failed, but my bank says the money is gone.",
        "I tried to add {sum} {when} and the app says declined.",
        "Why can I not put money on my account any more?",
        "I topped up {when} and my balance has not changed.",
        "It was taken from my other bank {when}.",
        "The transfer to myself does not show.",
        "Do I have to try again?",
    ],
}
# What the owner says of each topic, which version 0 is made of.
DESCRIPTIONS = [
    "card_arrival: a new card that has not come yet",
    "charged_twice: one purchase that was taken from the account two times",
    "exchange_rate: how one currency is converted into another",
    "lost_card: a card that is lost or stolen",
    "top_up_failed: money that was added and did not arrive",
]
WORDS = {
    "when": ("yesterday", "on Monday", "last week", "two weeks ago", "this morning", "in March"),
    "where": ("Oslo", "Lisbon", "Leeds", "Prague", "Tokyo", "Marseille", "the airport"),
    "shop": ("the bakery", "Nordby Books", "the petrol station", "my gym", "the hotel", "Kiosk 24"),
    "sum": ("12 euros", "250 euros", "40 pounds", "86.40", "1,000 kroner", "7.90"),
}
ASIDES = (
    "I have been with you for years.",
    "I called {when} and nobody knew.",
    "I am in {where} now.",
    "My old card is fine.",
    "I need {sum} at {shop} tomorrow.",
    "The app shows nothing.",
)
TOPICS = list(MESSAGES)
FILE = b"""Message,label,from
has my card been posted yet,card_arrival,ada
,lost_card,ben
you took the money twice,charged_twice,cleo
is the rate better on Monday,weekend,dan
my top-up was declined,top_up_failed,eva
"""


def bank_messages(number: int, *, seed: int) -> dict[str, int]:
    rng = np.random.default_rng(seed)
    said: dict[str, int] = {}
    while len(said) < number:
        topic = int(rng.integers(len(TOPICS)))
        about, more = str(rng.choice(MESSAGES[TOPICS[topic]])), str(rng.choice(ASIDES))
        text = " ".join([about, more] if rng.random() < 0.5 else [more, about])
        said.setdefault(text.format(**{name: str(rng.choice(words)) for name, words in WORDS.items()}), topic)
    return said


def keep(picture: bytes, path: Path) -> int:
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS).save(path, optimize=True)
    return path.stat().st_size


def test_pictures(page: "Page", live_site: Supervisor, tmp_path: Path) -> None:
    folder = Path(os.environ.get("DPAL_SCREENSHOTS") or tmp_path)
    manager = make_opener("ada")
    task = {"question": QUESTION, "classes": TOPICS, "data_kind": "text", "preset": "pool-experts", "owner": manager}
    task |= {"class_descriptions": DESCRIPTIONS}
    project = opening.create_project(name="Bank messages", **task)
    pool = bank_messages(POOL, seed=1)
    tested = {text: topic for text, topic in bank_messages(800, seed=2).items() if text not in pool}
    learning.upload(project, [[f'"{text}"'] for text in pool], ["text"])
    rows = [[f'"{text}"', TOPICS[topic]] for text, topic in tested.items()]
    learning.upload(project, rows, ["text", "label"], role="public_test")
    learning.run_to_release(project, make_user("grace"), version=BLOCKS, truth=pool.__getitem__)
    project.refresh_from_db()
    # Questions for the label page.
    asking = opening.create_project(name="New bank messages", **task)
    learning.upload(asking, [[f'"{text}"'] for text in bank_messages(200, seed=3)], ["text"])
    learning.work_off(asking)
    draft = drafts.keep_draft(
        project=project,
        file=SimpleUploadedFile("messages.csv", FILE),
        name="messages.csv",
        role="public_test",
        bad_rows="keep_good",
        owner=manager,
    )
    Membership.objects.create(project=asking, user=manager, role=Role.ANNOTATOR)
    client = browser_of(manager)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": live_site.url}])
    brought = raw_files.many_classes()
    files = {"pool": SimpleUploadedFile(brought.pool_name, brought.pool)}
    files["public"] = SimpleUploadedFile(brought.public_name, brought.public)
    opening_page = client.post(reverse("annotation:new_project"), files)["Location"]
    wanted = {
        "label": (reverse("annotation:label", args=[asking.slug]), DESK, "light"),
        "overview": (reverse("learner:overview", args=[project.slug]), DESK, "light"),
        "statement": (reverse("annotation:statement", args=[project.slug]), DESK, "light"),
        "dashboard": (reverse("learner:dashboard", args=[project.slug]), TALL, "light"),
        "dashboard-phone": (reverse("learner:dashboard", args=[project.slug]), PHONE, "dark"),
        "preview": (reverse("annotation:preview", args=[project.slug, draft.pk]), DESK, "light"),
        "opening": (opening_page, TALL, "light"),
    }
    for name, (address, size, scheme) in wanted.items():
        page.set_viewport_size(size)  # type: ignore[arg-type]
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        page.goto(live_site.url + address, wait_until="networkidle")
        assert 5_000 < keep(page.screenshot(), folder / f"{name}.png") < LARGEST_BYTES, name
