"""Rules of the rule files as local optimizers."""
