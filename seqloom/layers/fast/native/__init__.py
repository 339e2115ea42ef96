"""The kernels in C: their sources, how these are compiled, and where the library is found."""
