"""Drafts of example texts as a table `class,example`, for a person to edit and to upload with `dpal words`."""

import csv
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from addons.language_models.drafts import MOST_EXAMPLES, draft_examples
from addons.language_models.endpoint import Endpoint, EndpointFault
from annotation.budget.spending import safe_cell


class Command(BaseCommand):
    help = "Draft examples of classes by a language model, which is shown class names, the question and guidelines."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("endpoint", choices=sorted(settings.LANGUAGE_MODELS), help="a name in LANGUAGE_MODELS")
        parser.add_argument("classes", nargs="+", metavar="CLASS")
        parser.add_argument("--question", required=True, help="what annotators are asked")
        parser.add_argument("--guidelines", type=Path, help="a text file with guidelines for annotators")
        parser.add_argument("--examples", type=int, default=10, help="of each class")

    def handle(self, *args: Any, **options: Any) -> None:
        if not 1 <= options["examples"] <= MOST_EXAMPLES:
            raise CommandError(f"--examples must be from 1 to {MOST_EXAMPLES}.")
        url, model, key = settings.LANGUAGE_MODELS[options["endpoint"]]
        try:
            drafts = draft_examples(
                Endpoint(url, model, key),
                classes=options["classes"],
                question=options["question"],
                guidelines=options["guidelines"].read_text("utf-8") if options["guidelines"] else "",
                examples=options["examples"],
                hosts=settings.LANGUAGE_MODEL_HOSTS,
                local=settings.LANGUAGE_MODEL_LOCAL_HOSTS,
                seconds=settings.LANGUAGE_MODEL_SECONDS,
            )
        except (EndpointFault, OSError) as error:
            raise CommandError(str(error)) from error
        table = csv.writer(self.stdout, lineterminator="\n")
        table.writerow(["class", "example"])
        table.writerows([safe_cell(name), safe_cell(text)] for name, text in drafts)
        self.stderr.write(
            f'Read and edit them, then: dpal words PROJECT FILE --source "drafted by {model}, edited by ..."'
        )
