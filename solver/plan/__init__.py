"""Plans and fronts as data, and what they claim."""
