"""Waiting in a terminal until a job of a site has ended."""

import sys
import time

import click

from dpal.errors import DpalError
from dpal.site import Site, quoted

POLL_SECONDS = 1.0


def follow(site: Site, job: str) -> None:
    """Wait for the end of a job; a failed one is an error."""
    with click.progressbar(length=1, label="waiting", file=sys.stderr) as bar:
        while True:
            status = site.request("GET", f"jobs/{quoted(job)}")
            bar.label, bar.length = status["state"], status["progress_total"] or 1
            bar.update(status["progress_done"] - bar.pos)
            if status["state"] not in ("waiting", "running"):
                break
            time.sleep(POLL_SECONDS)
    if status["state"] != "done":
        raise DpalError(f"The job {status['state']}: {status['error'] or status['message'] or 'no reason given'}")
    click.echo(status["message"] or "done")
