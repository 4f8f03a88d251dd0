"""What a machine charges: transfers, compute, overlap, energy, and the replay of every plan."""
