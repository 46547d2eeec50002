"""Symbolic dimensions: expressions, what is known of their variables, and their text."""
