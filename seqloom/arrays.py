"""What kinds of arrays functions take and give, named once for the whole package."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]  # of any precision
Doubles = NDArray[np.float64]
Singles = NDArray[np.float32]
Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]
