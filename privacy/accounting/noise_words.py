"""What each kind of noise is called in a sentence for people."""

from collections.abc import Mapping
from typing import Final

from privacy.wording import say

NOISE_WORDS: Final[Mapping[str, str]] = {
    "discrete_laplace": say("discrete Laplace noise"),
    "gaussian": say("Gaussian noise"),
    "k_norm": say("K-norm noise"),
    "laplace": say("Laplace noise"),
    "truncated_geometric": say("truncated geometric noise"),
    "weighted_gaussian": say("weighted Gaussian noise"),
}
