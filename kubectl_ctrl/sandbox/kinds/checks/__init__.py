"""The checks of built-in kinds beyond their schemas, in the words and order of the server, by group of kinds."""
