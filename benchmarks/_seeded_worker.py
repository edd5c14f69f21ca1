"""Celery worker whose secret coins can be predicted; refuses any site but that of `benchmarks/gate_service.py`."""

import os
import sys
from pathlib import Path

FOLDER_PREFIX = "dpal-scale-"
SEED = 7


def main() -> None:
    if not Path(os.environ.get("DPAL_VAR", "")).name.startswith(FOLDER_PREFIX):
        sys.exit("this worker draws no secret coins and serves the benchmark's own site alone")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dpal_site.settings")
    import django

    django.setup()
    from annotation.gates import services as gates
    from dpal_site.celery import app
    from learner.rounds.services import loop
    from privacy.mechanisms.randomness import SimulationRandom

    gates.new_key = lambda: bytes(range(32))  # type: ignore[assignment]
    loop.SecureRandom = lambda: SimulationRandom(SEED)  # type: ignore[assignment,misc]
    app.start(sys.argv[1:])


if __name__ == "__main__":
    main()
