"""Problem hybrid: plans of groups of stages in pieces, each with a bank program."""
