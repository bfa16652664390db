"""Random variables: ops from a generator's state and parameters to a new state and a sample."""
