"""Files that cross from jax to pyjx and back; `made/` has what jax wrote, an archive a version."""
