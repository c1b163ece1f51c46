"""The machine: memory, limits, signals, threads, files that are replaced whole."""
