"""From a graph to an executable: the pipeline, and programs found on disk in its place."""
