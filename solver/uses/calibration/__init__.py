"""`certile calibrate`: prices of a machine from measured rows."""
