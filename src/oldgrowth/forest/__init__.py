"""The trained forest: its arrays, predictions, scores and file."""
