"""A release as a machine-learning backend of Label Studio: health, setup, predict."""

import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from xml.etree import ElementTree

from dpal.errors import NotFitting
from dpal.model import Model

MOST_BYTES = 64 * 1024 * 1024
# Tags that show a text; their value names its field in a task, such as `$text`.
SHOWS = {"Text", "HyperText", "Paragraphs"}


def control_of(config: str) -> tuple[str, str, str]:
    """Return the name of the control of classes, of what it is about, and the field of a task that holds its text."""
    if "<!" in config:
        raise NotFitting("The labelling interface has a document type declaration, which is refused.")
    try:
        elements = list(ElementTree.fromstring(config).iter())  # noqa: S314 - no declaration, so no entity
    except ElementTree.ParseError as error:
        raise NotFitting("The labelling interface is not valid XML.") from error
    shown = {one.get("name"): one.get("value", "") for one in elements if one.tag in SHOWS}
    for one in elements:
        if one.tag == "Choices" and shown.get(one.get("toName"), "").startswith("$"):
            return one.get("name", ""), one.get("toName", ""), shown[one.get("toName")][1:]
    raise NotFitting("The labelling interface has no Choices about a Text with a value such as $text.")


def predictions(model: Model, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return a release's predictions of a request's tasks, in the format of Label Studio."""
    name, about, field = control_of(str(asked.get("label_config") or ""))
    tasks = asked.get("tasks")
    if not isinstance(tasks, list) or not all(isinstance(one, dict) for one in tasks):
        raise NotFitting("The request must have a list of tasks.")
    held = [one.get("data") for one in tasks]
    texts = [data.get(field) if isinstance(data, dict) else None for data in held]
    labels, shares = model.predict_both([text if isinstance(text, str) else "" for text in texts])
    found = []
    for label, row in zip(labels.tolist(), shares, strict=True):
        named = list(label) if model.names_sets else [label]
        score = float(row.max(initial=0.0))
        value = {"choices": named}
        result = {"from_name": name, "to_name": about, "type": "choices", "value": value, "score": score}
        found.append({"result": [result] if named else [], "score": score, "model_version": version_of(model)})
    return {"results": found, "model_version": version_of(model)}


def version_of(model: Model) -> str:
    return f"{model.project}-{model.version}"


def serve(model: Model, *, host: str, port: int) -> ThreadingHTTPServer:
    """Return a bound server of a model's predictions; it keeps and logs no task."""
    answers: dict[str, dict[str, Any]] = {
        "/health": {"status": "UP", "model_class": "dpal"},
        "/": {"status": "UP", "model_class": "dpal"},
        "/setup": {"model_version": version_of(model)},
        "/versions": {"versions": [version_of(model)]},
        # Sent when somebody answers, which a release learns nothing from.
        "/webhook": {"status": "ok"},
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200 if self.path in answers else 404, answers.get(self.path, {}))

        def do_POST(self) -> None:
            told = self.headers.get("Content-Length", "0")
            if not (told.isascii() and told.isdigit()):
                self.close_connection = True
                self._answer(400, {"detail": "Content-Length must be a whole number."})
                return
            length = int(told)
            if length > MOST_BYTES:
                self.close_connection = True
                self._answer(413, {"detail": "The request is too large."})
                return
            content = self.rfile.read(length)
            if self.path != "/predict":
                self.do_GET()
                return
            try:
                self._answer(200, predictions(model, _object(content)))
            except NotFitting as error:
                self._answer(400, {"detail": str(error)})

        def _answer(self, status: int, body: Mapping[str, Any]) -> None:
            sent = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - named so above
            pass

    return ThreadingHTTPServer((host, port), Handler)


def _object(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise NotFitting("The request is not valid JSON.") from error
    if not isinstance(found, dict):
        raise NotFitting("The request must be a JSON object.")
    return found
