"""How any formulation is searched: goal by goal, by solvers (drivers), in jobs; and what of that is refused."""
