"""Scenes: datasets whose rows are pixels."""
