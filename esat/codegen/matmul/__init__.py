"""Products of matrices: BLAS and LAPACK, and loops where these are not the fastest."""
