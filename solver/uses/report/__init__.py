"""Pages of plans, fronts, benchmarks and sweeps."""
