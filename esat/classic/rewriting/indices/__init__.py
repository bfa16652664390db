"""Parts of arrays: taken, written, and of parts."""
