"""The referee of nests: walked step by step, counted on addresses, and executed on integers."""
