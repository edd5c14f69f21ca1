#!/usr/bin/env python
"""Entry point of every management command."""

import os
import sys


def main() -> None:
    """Run the command named on the command line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dpal_site.settings")
    if sys.argv[1:2] == ["simulate"]:
        # It works on public files alone: no server is started for it.
        os.environ.setdefault("DPAL_NO_SERVERS", "1")
    from django.core.management import execute_from_command_line  # noqa: PLC0415  # after the settings are named

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
