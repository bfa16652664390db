"""Programs as one Python function each: the driver, printed."""
