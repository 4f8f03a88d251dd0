"""F3 mesh: layers on a mesh of tile units, and on arrays."""
