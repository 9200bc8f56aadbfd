"""From argv to values: pflag's grammar, shared flags, and the declaration of a verb."""
