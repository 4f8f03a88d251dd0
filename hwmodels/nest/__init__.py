"""One layer's nest: its closed-form price, and its replay."""
