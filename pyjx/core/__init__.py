"""The IR and the one place where interpreters meet."""
