"""kind: nodes are containers, pods run."""
