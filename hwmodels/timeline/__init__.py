"""A network's steps on the engine and its transfers on DMA queues: times (`price`), and the referee (`replay`)."""
