"""Ring stores, as far as a reader needs them: one file per engine."""
