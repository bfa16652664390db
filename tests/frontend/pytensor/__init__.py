"""PyTensor graphs, compiled by esat, beside PyTensor's own results."""
