"""The referee of nests on memories in levels: what moves step by step, and, of small layers, with what in the tiles."""
