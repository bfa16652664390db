"""Which axes have one length, and how they are cut where arrays are put together."""
