"""The controllers of a cluster, as actors on its clock."""
