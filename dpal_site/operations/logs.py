"""Logging of every process: plain lines for a person, JSON lines for a collector; never what was in a row."""

import logging
import traceback
from types import TracebackType
from typing import Any

import structlog

FORMATS = ("plain", "json")
# Extra fields that reach a line; Celery and Django add others, with arguments and requests in them.
REQUEST_FIELDS = ("exception", "method", "route", "status", "milliseconds", "user_id", "token_id")
# Those of a security event besides; see `security`.
FIELDS = (*REQUEST_FIELDS, "security", "network", "account", "factor", "asked", "reason")
NOWHERE = "an address of no page"
OWN_PACKAGES = ("privacy.", "annotation.", "learner.", "dpal_site.")


class WithoutContent(logging.Filter):
    """Say of an error where it came from and of which kind it is; its words only if they are ours."""

    def filter(self, record: logging.LogRecord) -> bool:
        _without_address(record)
        if record.exc_info and (error := record.exc_info[1]) is not None:
            record.exception = described_error(error)
            record.exc_info = record.exc_text = None
            if isinstance(record.args, dict) and "exc" in record.args:  # Celery puts both into its message
                record.args = {**record.args, "exc": summary(error), "traceback": ""}
        return True


def _without_address(record: logging.LogRecord) -> None:
    """Name the route where Django names the address: invitations, crowd links and links in mails are secrets."""
    request: Any = getattr(record, "request", None)
    path = getattr(request, "path", "")
    if not isinstance(path, str) or len(path) < 2:
        return
    match = getattr(request, "resolver_match", None)
    route = f"/{match.route}" if match else NOWHERE
    said = record.getMessage()
    for written in (path, path.encode("unicode_escape").decode("ascii")):
        said = said.replace(written, route)
    record.msg, record.args = said, ()


def summary(error: BaseException) -> str:
    kind = type(error)
    name = f"{kind.__module__}.{kind.__qualname__}"
    return f"{name}: {error}" if f"{kind.__module__}.".startswith(OWN_PACKAGES) else name


def described_error(error: BaseException) -> str:
    """Return the chain of an error as `traceback` prints it, without source lines, values or foreign messages."""
    parts: list[str] = []
    link: BaseException | None = error
    seen: set[int] = set()
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        parts.append("\n".join([summary(link), *_frames(link.__traceback__)]))
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return "\ncaused by ".join(parts)


def _frames(trace: TracebackType | None) -> list[str]:
    return [f"  {frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)]


def _on_one_line(_logger: Any, _name: str, line: structlog.types.EventDict) -> structlog.types.EventDict:
    if isinstance(said := line.get("event"), str):
        line["event"] = "\\n".join(said.splitlines())
    return line


def logging_settings(form: str, level: str) -> dict[str, Any]:
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(allow=FIELDS),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    shared.append(_on_one_line)
    endings: dict[str, structlog.types.Processor] = {
        "plain": structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0),
        "json": structlog.processors.JSONRenderer(),
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"without_content": {"()": WithoutContent}},
        "formatters": {
            "lines": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": shared,
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, endings[form]],
            }
        },
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "lines", "filters": ["without_content"]}
        },
        "root": {"handlers": ["stderr"], "level": level},
    }
