"""Completion in the shell: scripts that hold all names, so that completing starts no Python."""
