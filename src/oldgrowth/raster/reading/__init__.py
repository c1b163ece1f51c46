"""Raster files as layers of pixels, in strips of lines."""
