"""Programs of other libraries' users, on pyjx under the name jax."""
