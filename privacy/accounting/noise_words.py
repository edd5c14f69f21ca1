"""What each kind of noise is called in a sentence for people."""

from collections.abc import Mapping
from typing import Final

from privacy.wording import as_message

NOISE_WORDS: Final[Mapping[str, str]] = {
    "discrete_laplace": as_message("discrete Laplace noise"),
    "gaussian": as_message("Gaussian noise"),
    "k_norm": as_message("K-norm noise"),
    "laplace": as_message("Laplace noise"),
    "truncated_geometric": as_message("truncated geometric noise"),
    "weighted_gaussian": as_message("weighted Gaussian noise"),
}
