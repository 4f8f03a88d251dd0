"""Problem placement: where buffers lie, and the referee that walks through time."""
