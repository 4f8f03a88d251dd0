"""`why`: where the time or the bytes of a plan go, what binds, what the next-best decisions cost (docs/why.md)."""
