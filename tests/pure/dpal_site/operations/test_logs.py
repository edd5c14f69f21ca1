import io
import json
import logging
import logging.config

import pytest
import structlog

from dpal_site import celery
from dpal_site.operations import logs
from privacy.errors import PrivacyError

SECRET = "meet me at the harbour"


@pytest.fixture
def lines(request):
    sink = io.StringIO()
    settings = logs.logging_settings(request.param, "INFO")
    formatter = settings["formatters"]["lines"]
    handler = logging.StreamHandler(sink)
    handler.addFilter(logs.WithoutContent())
    handler.setFormatter(formatter["()"](**{key: value for key, value in formatter.items() if key != "()"}))
    logger = logging.Logger("annotation.data.services.datasets")
    logger.addHandler(handler)
    return logger, sink


@pytest.mark.parametrize("lines", ["json"], indirect=True)
def test_a_json_line_names_its_request_and_level(lines):
    logger, sink = lines
    with structlog.contextvars.bound_contextvars(request_id="abc"):
        logger.warning("job %s is sent again", 7, extra={"status": 200, "request": SECRET})
    line = json.loads(sink.getvalue())
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "job 7 is sent again",
        "level": "warning",
        "logger": "annotation.data.services.datasets",
        "request_id": "abc",
        "status": 200,
    }


@pytest.mark.parametrize("lines", ["json", "plain"], indirect=True)
def test_a_foreign_error_is_named_but_not_quoted(lines):
    logger, sink = lines
    try:
        try:
            raise ValueError(SECRET)
        except ValueError as error:
            raise PrivacyError("field k: 1 is below 2") from error
    except PrivacyError:
        logger.exception("upload failed")
    said = sink.getvalue()
    assert "builtins.ValueError" in said
    assert "field k: 1 is below 2" in said
    assert "test_a_foreign_error_is_named_but_not_quoted" in said
    assert SECRET not in said


@pytest.mark.parametrize("lines", ["json", "plain"], indirect=True)
def test_what_celery_says_of_a_failed_task_quotes_nothing(lines):
    logger, sink = lines
    try:
        raise ValueError(SECRET)
    except ValueError as error:
        details = {"id": "1", "name": "task", "exc": repr(error), "traceback": SECRET, "args": SECRET}
        logger.error("Task %(name)s[%(id)s]: %(exc)s %(traceback)s", details, exc_info=True, extra={"data": details})
    said = sink.getvalue()
    assert "Task task[1]: builtins.ValueError" in said
    assert SECRET not in said


@pytest.mark.parametrize(
    ("sent", "kept"), [("a1b2c3d4", True), ("short", False), ("a b c d e f", False), ("x" * 65, False), (None, False)]
)
def test_only_an_id_that_can_carry_nothing_is_taken_over(sent, kept):
    assert (celery.request_id(sent) == sent) is kept


def test_every_logger_writes_to_standard_error_alone():
    settings = logs.logging_settings("json", "INFO")
    assert set(settings["handlers"]) == {"stderr"}
    assert settings["handlers"]["stderr"]["class"] == "logging.StreamHandler"
    assert "stream" not in settings["handlers"]["stderr"]
    assert not settings.get("loggers")
