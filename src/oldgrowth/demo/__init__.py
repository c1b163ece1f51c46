"""The demonstration: a generated scene, trained beyond its memory limit."""
