"""Labels of pixels, and which pixels are rows."""
