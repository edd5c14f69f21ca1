"""Everything the learner promises to be fast at: scoring, choosing, training and simulating, beside their peers.

Run: python benchmarks/learner.py [--rows N] [--fit-rows N] [--dimension D] [--runs N] [--repeats R] [--seeds S]
    [--peer-python PATH] [--json FILE]

Limits: scoring and screening 1 M x 128 float32 at most 1.5 times the time to copy them and 64 MiB of extra memory,
top-c 2.5 times; private logistic regression on 100 k x 128 at most 1.2 times scikit-learn's lbfgs, 0.7 times on
float32; 100 simulated runs of mini-batch descent at least 5 times as fast as a loop; held-out accuracy at most 0.01
below diffprivlib's at the same epsilon and regularisation. That peer is no dependency and needs scikit-learn below
1.8, so it gets an environment of its own:

    python3 -m venv peer && peer/bin/pip install diffprivlib==0.6.6 "scikit-learn<1.8"
    python benchmarks/learner.py --peer-python peer/bin/python --seeds 200
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Scripts beside this file find it in place of the package of the same name, for which it then stands.
__path__ = [str(ROOT / "learner")]

if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    from benchmarks.speed.report import main

    sys.exit(main(__doc__))
