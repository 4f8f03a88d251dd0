"""Selection: schedules and the referee."""
