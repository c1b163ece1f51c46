"""Maps: predictions as georeferenced files."""
