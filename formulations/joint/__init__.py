"""Joint: the nests of a network's layers and what stays on chip between them."""
