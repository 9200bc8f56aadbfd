"""kwok: a real control plane, simulated nodes and pods, no container runtime."""
