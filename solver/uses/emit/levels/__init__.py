"""C of plans of memories in levels: `nest` writes a layer, `program` the files and what is refused."""
