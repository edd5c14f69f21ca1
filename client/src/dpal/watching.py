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
            told = site.get(f"jobs/{quoted(job)}")
            bar.label, bar.length = told["state"], told["progress_total"] or 1
            bar.update(told["progress_done"] - bar.pos)
            if told["state"] not in ("waiting", "running"):
                break
            time.sleep(POLL_SECONDS)
    if told["state"] != "done":
        raise DpalError(f"The job {told['state']}: {told['error'] or told['message'] or 'no reason given'}")
    click.echo(told["message"] or "done")
