"""Patches, field sets and managedFields: what a write changes, and who owns each field."""
