"""The page that opens a project, used as a browser does."""

from collections.abc import Mapping
from typing import Any

from django.test import Client
from django.urls import reverse


def begin(client: Client, preset: str) -> str:
    """Begin a project without a file, and return the address of its page."""
    return client.post(reverse("annotation:new_project"), {"preset": preset})["Location"]


def open_by(client: Client, preset: str, typed: Mapping[str, Any]):
    """Type this over the defaults and open the project; return the answer."""
    return client.post(begin(client, preset), {**typed, "open": "1"})


def look(client: Client, preset: str, typed: Mapping[str, Any] | None = None):
    """Return the page with what was typed, which is kept and not opened."""
    address = begin(client, preset)
    if typed is not None:
        client.post(address, typed)
    return client.get(address)


def sent_by(page, *left_out: Any) -> dict[str, Any]:
    """Return what a browser sends of the page, which has a few fields beside those of its forms."""
    forms = [page.context[name] for name in ("form", "annotators", "level", "membership")]
    held = {bound.name: bound.value() for form in forms for bound in form}
    sent = {name: value for name, value in held.items() if value not in (None, False, "false", *left_out)}
    for part in page.context["parts"]:
        sent |= {f"{part['part']}-role-{place}": role for place, _name, role, _choices in part["columns"]}
        sent |= {f"value-{place}": name for place, _value, name, _count in part["values"]}
        sent |= {f"{part['part']}-{name}": part["reading"].initial.get(name, "") for name in part["reading"].fields}
        sent[f"{part['part']}-written"] = "1"
    sent |= {"agreed": page.context["agreed"], "shown": "1"}
    return {name: "on" if value is True else value for name, value in sent.items()}


def open_as_shown(client: Client, address: str, **typed: Any):
    """Press the button that opens the project on its page."""
    return client.post(address, sent_by(client.get(address)) | {"open": "1"} | typed)
