"""esat: a compiler for tensor expressions that optimizes by equality saturation."""
