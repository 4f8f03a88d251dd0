"""F8 selection: schedules and the referee."""
