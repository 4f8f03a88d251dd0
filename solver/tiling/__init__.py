"""Problems tiling and slicing."""
