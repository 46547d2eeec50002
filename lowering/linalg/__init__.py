"""Linear algebra: LAPACK on CPU, cuSOLVER and its like on GPU, XLA's own operations elsewhere."""
