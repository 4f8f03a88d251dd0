"""Networks: operators, the layers that are planned, and a network seen as stages, stores, tasks or pieces."""
