"""Medians of the demonstration's projects over seeds: `python -m benchmarks.demo [--seeds 20]`.

Writes dpal_site/demo/medians.json; returns 1 if a last release is below version 0, random choice or a constant.
"""

import argparse
import json
import os
import sys
from datetime import UTC, datetime

import django
import numpy as np


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args().seeds
    # What a preset chooses is known once the applications are.
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dpal_site.settings")
    django.setup()
    from dpal_site.demo.plans import default_plans
    from dpal_site.demo.report import MEDIANS, simulated

    runs: dict[str, list[list[float]]] = {}
    shapes: dict[str, int] = {}
    for seed in range(seeds):
        for plan in default_plans(seed=seed):
            found = simulated(plan)
            others = [found.version_0 if found.version_0 is not None else np.nan, found.random, found.no_privacy]
            runs.setdefault(plan.name, []).append([*found.releases, *others, found.constant])
            shapes[plan.name] = len(found.releases)
            print(
                f"{plan.name:15} seed {seed:2}  " + "  ".join(f"{share:.3f}" for share in runs[plan.name][-1]),
                flush=True,
            )
    projects, lost = {}, 0
    for name, shares in runs.items():
        medians = [None if np.isnan(share) else round(float(share), 4) for share in np.median(shares, axis=0)]
        releases, rest = medians[: shapes[name]], medians[shapes[name] :]
        version_0, random, no_privacy, constant = rest
        lost += any(releases[-1] < other for other in (version_0, random, constant) if other is not None)
        projects[name] = {
            "releases": releases,
            "version_0": version_0,
            "random": random,
            "no_privacy": no_privacy,
            "constant": constant,
        }
    told = {
        "command": f"python -m benchmarks.demo --seeds {seeds}",
        "date": datetime.now(tz=UTC).date().isoformat(),
        "seeds": seeds,
        "projects": projects,
    }
    MEDIANS.write_text(json.dumps(told, indent=1) + "\n")
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())
