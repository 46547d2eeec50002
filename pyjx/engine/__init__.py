"""The engines of the transformations: interpreters, and programs derived from jaxprs."""
