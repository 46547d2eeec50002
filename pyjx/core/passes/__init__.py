"""Rewrites of jaxprs between tracing and lowering."""
