"""From terms to the cheapest equal ones: saturation, or its result on disk, and the choice of forms."""
