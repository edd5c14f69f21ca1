"""`manage.py demo`: two private projects from an empty database to their released models, then the site."""

import os
import time
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

from dpal_site.demo import stage as stages
from dpal_site.demo.annotators import MISTAKE_RATE, SimulatedAnnotator
from dpal_site.demo.plans import ProjectPlan, default_plans
from dpal_site.demo.report import medians_made_by, report_lines, simulated
from dpal_site.embedded import servers
from dpal_site.embedded.host import EmbeddedError, ProcessDied
from dpal_site.embedded.processes import Supervisor
from dpal_site.operations import preparation

POLL_SECONDS = 0.5
PATIENCE_SECONDS = 15 * 60
# A worker that is killed holds its work for this long.
LEASE_SECONDS = "6"
# A process that keeps dying has a fault that starting it again does not mend.
RESTARTS = 50


class Command(BaseCommand):
    help = (
        "Run a trusted and a crowd project with simulated annotators to their releases; print labels, epsilon and "
        "accuracy beside what they must beat; then serve the site."
    )

    _restarts_left = RESTARTS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--exit", action="store_true", help="end after the table instead of serving the site")
        parser.add_argument("--port", type=int, help="port of the web server; default: the first free one from 8000")

    def handle(self, *args: Any, **options: Any) -> None:
        plans = default_plans()
        os.environ.setdefault("WORK_LEASE_SECONDS", LEASE_SECONDS)
        log_dir = servers.var_dir() / "log"
        try:
            with Supervisor(log_dir) as site:
                self._say("Bringing the database and the static files up to date.")
                preparation.prepare_site()
                apart = preparation.label_process_database_url()
                self._say("Starting the web server, the workers and the clock.")
                url = site.start_web_and_label(options["port"]) if apart else site.start_web(options["port"])
                site.start_workers()
                site.start_beat()
                self._wait_until_ready(site)
                self._say(f"The site runs at {url}; logs are in {log_dir}.")
                stage = self._play(site, plans)
                self._report(stage)
                if not options["exit"]:
                    self._serve(site, stage)
        except KeyboardInterrupt:
            self._say("Stopped.")
        except EmbeddedError as error:
            raise CommandError(str(error)) from error

    def _wait_until_ready(self, site: Supervisor) -> None:
        while True:
            try:
                site.wait_until_ready()
            except ProcessDied:
                self._keep_running(site)
            else:
                return

    def _play(self, site: Supervisor, plans: Sequence[ProjectPlan]) -> stages.Stage:
        """Open the projects and let everybody work until each has its last release, or the last it can pay for."""
        started = time.monotonic()
        for plan in plans:
            self._say(plan.title)
        stage = stages.set_stage(plans)
        people = self._people(site.url, stage)
        for person in people:
            person.start()
        news = stages.News(stage)
        try:
            while not stages.is_finished(stage):
                self._tell(news, started)
                self._keep_running(site)
                stages.close_answered_blocks(stage)
                if problem := stages.dead_end(stage):
                    raise CommandError(problem)
                if time.monotonic() - started > PATIENCE_SECONDS:
                    raise CommandError(f"not finished after {PATIENCE_SECONDS} s; the logs are in {site.log_dir}")
                time.sleep(POLL_SECONDS)
            self._tell(news, started)
        finally:
            for person in people:
                person.stop()
            for person in people:
                person.join(timeout=10)
        answers = sum(person.answered for person in people)
        self._say(f"{answers:,} answers in {time.monotonic() - started:.0f} s, with {MISTAKE_RATE:.0%} mistakes.")
        return stage

    def _people(self, url: str, stage: stages.Stage) -> list[SimulatedAnnotator]:
        desks = {project.slug: plan.answer for plan, project in stage.opened}
        return [
            SimulatedAnnotator(name=name, password=stage.logins[name].password, site=url, desks=desks, seed=seed)
            for seed, name in enumerate(stages.ANNOTATORS)
        ]

    def _tell(self, news: stages.News, started: float) -> None:
        for sentence in news:
            self._say(f"{time.monotonic() - started:5.0f} s  {sentence}")

    def _keep_running(self, site: Supervisor) -> None:
        for name in site.ended():
            if not self._restarts_left:
                site.check_running()
            self._restarts_left -= 1
            self._say(f"The {name} process ended; starting it again.")
            site.restart(name)

    def _report(self, stage: stages.Stage) -> None:
        self._say("")
        for plan, project in stage.opened:
            for line in report_lines(plan, project, simulated(plan)):
                self._say(line)
        for sentence in stages.words_of_early_ends(stage):
            self._say(sentence)
        made_by = medians_made_by()
        self._say("Shares right on public data. Releases are trained by the site; the other rows and the medians are")
        self._say(f"simulated on the same records ({made_by['command']}, {made_by['date']}).")
        self._say(f"Reservations not settled: {stages.open_reservations(stage)}.")

    def _serve(self, site: Supervisor, stage: stages.Stage) -> None:
        stages.plan_another_release(stage)
        self._say("")
        models = f"{site.url}/api/v1/projects/{stage.opened[0][1].slug}/models/latest"
        self._say(f'curl -H "Authorization: Bearer {stage.token}" {models}')
        self._say(f"The site runs at {site.url}. Ctrl-C stops it.")
        for name in (stages.ANNOTATORS[0], stages.ADMIN, stages.ENGINEER):
            self._say(f"log in as {name:<10} with {stage.logins[name].password}")
        connections.close_all()
        site.keep_running(self._say)

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
