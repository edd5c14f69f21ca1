"""Simulated annotators: they log in, read the page and press a button over HTTP, as a person's browser would."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.client import HTTPException
from http.cookiejar import CookieJar
from typing import ClassVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urljoin
from urllib.request import HTTPCookieProcessor, Request, build_opener

import numpy as np

GivesAnswer = Callable[["LabelPage", "Browser"], int]
# How often a simulated person errs.
MISTAKE_RATE = 0.03
PAUSE_SECONDS = 1.0
# Questions of one project before a look at the next, so that no project waits for another.
SHIFT = 20


@dataclass(slots=True)
class Form:
    action: str
    hidden: dict[str, str] = field(default_factory=dict)
    choices: list[str] = field(default_factory=list)


class LabelPage(HTMLParser):
    VOID: ClassVar[frozenset[str]] = frozenset({"img", "input", "br", "meta", "link", "hr"})

    def __init__(self, url: str, text: str) -> None:
        super().__init__()
        self.url = url
        self.forms: dict[str, Form] = {}
        self.question = ""
        self.image_url = ""
        self._form: Form | None = None
        self._selects = ""
        self._depth_in_question = 0
        self._seen_question = False
        self.feed(text)
        self.question = self.question.strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if self._depth_in_question and tag not in self.VOID:
            self._depth_in_question += 1
        # The first one: what the page keeps for other people and other questions is not read.
        if given.get("id") == "question" and not self._seen_question:
            self._depth_in_question, self._seen_question = 1, True
        if tag == "img" and self._depth_in_question:
            self.image_url = given.get("src", "")
        if tag == "form":
            # Where the page came from, which may be another process than the one that was asked.
            self._form = Form(action=urljoin(self.url, given.get("action", "")))
            self.forms[given.get("id") or given.get("action", "")] = self._form
        elif tag == "input" and self._form is not None and given.get("type") == "hidden":
            self._form.hidden[given["name"]] = given.get("value", "")
        elif tag == "select":
            self._selects = given.get("name", "")
        elif self._form is not None and "choice" in (self._selects if tag == "option" else "", given.get("name")):
            # Many classes are buttons no more, but options to select; the first says that none is chosen yet.
            self._form.choices += [given["value"]] if given.get("value") else []

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        if self._depth_in_question and tag not in self.VOID:
            self._depth_in_question -= 1

    def handle_data(self, data: str) -> None:
        if self._depth_in_question:
            self.question += data


class Browser:
    def __init__(self, site: str) -> None:
        self.site = site
        self._opener = build_opener(HTTPCookieProcessor(CookieJar()))

    def fetch(self, path: str, *, data: Mapping[str, str] | None = None) -> tuple[str, bytes]:
        url = urljoin(self.site, path)
        body = None if data is None else urlencode(data).encode()
        request = Request(url, data=body, headers={"Referer": url})  # noqa: S310 - always our own site
        with self._opener.open(request, timeout=30) as response:
            return response.url, response.read()

    def open(self, path: str) -> LabelPage:
        url, body = self.fetch(path)
        return LabelPage(url, body.decode())

    def send(self, form: Form, fields: Mapping[str, str]) -> LabelPage:
        url, body = self.fetch(form.action, data={**form.hidden, **fields})
        return LabelPage(url, body.decode())

    def log_in(self, *, username: str, password: str) -> None:
        page = self.open("/login/")
        form = next(form for form in page.forms.values() if "csrfmiddlewaretoken" in form.hidden)
        form.action = form.action or "/login/"
        answered = self.send(form, {"login": username, "password": password})
        if answered.url.endswith("/login/"):
            raise PermissionError(f"the site refused the login of {username}")


class SimulatedAnnotator(threading.Thread):
    def __init__(self, *, name: str, password: str, site: str, desks: Mapping[str, GivesAnswer], seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self.answered = 0
        self._password = password
        self._browser = Browser(site)
        self._desks = desks
        self._rng = np.random.default_rng(seed)
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        logged_in = False
        while not self._stopping.is_set():
            try:
                if not logged_in:
                    self._browser.log_in(username=self.name, password=self._password)
                    logged_in = True
                worked = sum([self._work_at(slug, answer) for slug, answer in self._desks.items()])
            except (URLError, HTTPError, HTTPException, OSError):
                worked = 0
            if not worked:
                self._stopping.wait(PAUSE_SECONDS)

    def _work_at(self, slug: str, answer: GivesAnswer) -> int:
        page = self._browser.open(f"/projects/{slug}/label/")
        done = 0
        while done < SHIFT and (form := page.forms.get("answer")) is not None and not self._stopping.is_set():
            choice = self._with_mistakes(answer(page, self._browser), form.choices)
            page = self._browser.send(form, {"choice": choice})
            done += 1
            self.answered += 1
        return done

    def _with_mistakes(self, choice: int, choices: Sequence[str]) -> str:
        if self._rng.random() < MISTAKE_RATE:
            return str(self._rng.choice([other for other in choices if other != str(choice)]))
        return str(choice)
