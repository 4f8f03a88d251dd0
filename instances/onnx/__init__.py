"""ONNX files as networks, and with their weights as models."""
