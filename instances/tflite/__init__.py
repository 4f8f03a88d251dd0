"""TFLite files as ONNX models: what is read is one graph, whichever format it comes in."""
