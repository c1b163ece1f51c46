"""Rasters in, maps out."""
