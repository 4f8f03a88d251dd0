"""F4 partial engine: layers on a small engine with banks, and how large to make it."""
