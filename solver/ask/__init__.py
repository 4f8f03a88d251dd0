"""The question: options, limits, signals, progress."""
