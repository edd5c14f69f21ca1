import re

import pytest
from django.conf import settings

from tests import learning
from tests.clients import browser_of
from tests.factories import make_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PHONE = {"width": 390, "height": 780}
NAMES = [f"card_payment_not_recognised_{number}" for number in range(70)] + [
    f"identityverificationappeal{letter}" for letter in "abcdefg"
]
LINKS = "[...document.querySelectorAll('a[href]')].map(link => link.pathname)"
# The innermost elements that reach past the right edge and are not in a frame that scrolls.
WIDER = """() => [...document.querySelectorAll("body *")].filter(one => {
  if (one.getBoundingClientRect().right <= innerWidth + 1) return false;
  for (let frame = one; frame; frame = frame.parentElement)
    if (getComputedStyle(frame).overflowX !== "visible") return false;
  return true;
}).map(one => one.outerHTML.slice(0, 120)).slice(-3)"""


def test_no_page_is_wider_than_a_phone(page, live_server):
    owner = make_user("manager")
    project = learning.open_trusted(owner, classes=NAMES)
    rows = [[text, NAMES[place % 77]] for place, text in enumerate(learning.sentences(160))]
    learning.upload(project, [[text] for text, _name in rows[:80]], ["text"])
    learning.upload(project, rows[80:], ["text", "label"], role="public_test")
    learning.run_to_release(project, make_user("ann"), version=1, truth=lambda text: len(text) % 77)
    client = browser_of(owner)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": live_server.url}])
    page.set_viewport_size(PHONE)

    base = f"/projects/{project.slug}/"
    waiting, kinds, walked, wide = [base], set(), set(), {}
    while waiting:
        address = waiting.pop(0)
        kind = re.sub(r"/\d+|/[0-9a-f-]{36}", "/N", address)
        if kind in kinds:
            continue
        kinds.add(kind)
        answer = client.get(address, follow=True)
        answer.close()
        if answer.status_code != 200 or not answer.headers["Content-Type"].startswith("text/html"):
            continue
        walked.add(address)
        page.goto(live_server.url + address)
        if page.evaluate("document.documentElement.scrollWidth") != PHONE["width"]:
            wide[address] = page.evaluate(WIDER)
        waiting += [link for link in page.evaluate(LINKS) if link.startswith(base)]
    assert wide == {}
    assert {f"{base}{name}/" for name in ("releases/1", "quality/review", "labelling/questions")} <= walked
