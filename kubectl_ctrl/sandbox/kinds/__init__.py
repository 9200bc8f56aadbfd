"""The resource types: the built-in ones, and those that CRDs add."""
