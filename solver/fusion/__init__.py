"""Problem fusion in `solver`: plans, and how they are shown."""
