"""What can be asked: workloads, machines and their loaders."""
