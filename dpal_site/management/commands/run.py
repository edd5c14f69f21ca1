"""`manage.py run`: the whole site on this machine until Ctrl-C."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from dpal_site.embedded import servers
from dpal_site.embedded.host import EmbeddedError
from dpal_site.embedded.processes import Supervisor
from dpal_site.operations import preparation


class Command(BaseCommand):
    help = "Run the site: database and broker where none are configured, web server, workers and clock, until Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, help="port of the web server; default: the first free one from 8000")
        parser.add_argument("--workers", type=int, default=2, help="web server processes; default 2")
        parser.add_argument("--concurrency", type=int, default=2, help="heavy tasks run at once; default 2")
        parser.add_argument(
            "--one-process", action="store_true", help="serve the label pages by the same process as all others"
        )
        parser.add_argument("--echo", action="store_true", help="repeat the processes' logs here")

    def handle(self, *args: Any, **options: Any) -> None:
        log_dir = servers.var_dir() / "log"
        try:
            with Supervisor(log_dir, echo=options["echo"]) as site:
                self.stdout.write("Bringing the database and the static files up to date.")
                preparation.prepare_site()
                apart = preparation.label_process_database_url() and not options["one_process"]
                self.stdout.write("Starting the web server, the workers and the clock.")
                self.stdout.flush()
                start = site.start_web_and_label if apart else site.start_web
                url = start(options["port"], workers=options["workers"])
                site.start_workers(options["concurrency"])
                site.start_beat()
                site.wait_until_ready()
                self.stdout.write(f"The site runs at {url}; logs are in {log_dir}. Ctrl-C stops it.")
                self.stdout.flush()
                site.keep_running(self._say)
        except KeyboardInterrupt:
            self.stdout.write("Stopped.")
        except EmbeddedError as error:
            raise CommandError(str(error)) from error

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
