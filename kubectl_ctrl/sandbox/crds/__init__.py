"""CustomResourceDefinitions: their structural schemas applied to custom resources."""
