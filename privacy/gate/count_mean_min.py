"""Count-mean-min sketch: the count-min counters with the mean share of other keys taken off."""

import numpy as np
from numpy.typing import NDArray

from privacy.gate.count_min import CountMinSketch
from privacy.gate.hashing import Words


class CountMeanMinSketch(CountMinSketch):
    """The sketch that [2]_ decided with: the median counter less the mean noise, over conservative updates.

    An estimate may lie on either side of the true count, so nothing that lets texts out may use it: it is here for
    planning and for reproduction. Conservative updates keep most noise out of the counters, so that taking off the
    mean of all other counts leans low; the plain `CountMinSketch` is then the closer one.

    Parameters
    ----------
    width : int
        Counters a row, in [2, 2**32 - 1].
    depth : int
        Rows, in [1, 16].

    References
    ----------
    .. [1] Goyal, Daume, Cormode, "Sketch algorithms for estimating point queries in NLP", 2012, Section 3.1.
    .. [2] Feyisetan et al., "Privacy-preserving active learning on sensitive data for user intent
       classification", 2019.
    """

    magic = b"CMM1"

    def __init__(self, width: int, depth: int = 4) -> None:
        if width < 2:
            raise ValueError(f"width must be >= 2, got {width}")
        super().__init__(width, depth)

    def estimate(self, hashes: Words) -> NDArray[np.int64]:
        """Return the median over the rows of counter minus noise, never under 0 or over the count-min bound."""
        if not hashes.size:
            return np.empty(0, dtype=np.int64)
        places = self._places(hashes)
        counters = np.array([row[place] for row, place in zip(self.counters, places, strict=True)], dtype=np.float64)
        # What other keys put into one row's counters, spread evenly over the width - 1 others.
        noise = (self.total - counters) / (self.width - 1)
        medians = np.rint(np.median(counters - noise, axis=0)).astype(np.int64)
        return np.clip(medians, 0, self._smallest(places))
