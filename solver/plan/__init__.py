"""Plans, fronts, figures and explanations as data, and what plans claim."""
