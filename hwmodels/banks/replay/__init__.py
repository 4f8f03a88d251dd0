"""The referee of bank programs: bank by bank, in time, and cycle by cycle."""
