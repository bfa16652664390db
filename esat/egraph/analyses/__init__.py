"""What is known of classes: structure of matrices, signs, ranges, sizes."""
