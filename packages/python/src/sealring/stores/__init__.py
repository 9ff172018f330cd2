"""Ring stores: one file per engine."""
