"""Training rows as the stages read them, from arrays and datasets, with class codes."""
