"""Words and numbers as people read them: text, counts, warnings, the surface that is in use."""
