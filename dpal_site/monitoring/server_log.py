"""What the web server itself says of a request: that it failed and where, never the address or what was sent."""

import logging
import re

from gunicorn.glogging import Logger  # type: ignore[import-untyped]

from dpal_site.monitoring.logs import WithoutContent

# The rest quotes what came.
REFUSED = re.compile(r"Invalid request from ip=.*", re.DOTALL)
FAILED = re.compile(r"Error handling request .*", re.DOTALL)


class WithoutRequest(WithoutContent):
    """Keep of gunicorn's lines what kind of thing happened."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record in place and let it through."""
        said = REFUSED.sub("A request was refused that is not one by the rules of HTTP", record.getMessage())
        record.msg, record.args = FAILED.sub("A request failed", said), ()
        passes = super().filter(record)
        if where := getattr(record, "exception", ""):
            record.msg = f"{record.msg}\n{where}"
        return passes


class ServerLog(Logger):  # type: ignore[misc]  # gunicorn has no types
    """Gunicorn's log of errors; a log of requests is what the site writes itself."""

    def setup(self, cfg: object) -> None:
        """Pass every line through the filter."""
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.addFilter(WithoutRequest())
