"""Arrays as pure code passes them, named by what they hold."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
CountArray = NDArray[np.int64]
