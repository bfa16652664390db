"""Other forms of classes: normal forms of quotients and of sums of products of matrices."""
