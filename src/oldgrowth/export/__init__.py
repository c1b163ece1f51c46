"""Forests for other libraries: scikit-learn, treelite, ONNX."""
