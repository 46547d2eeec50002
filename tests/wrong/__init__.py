"""When programs go wrong: faults that are planted, and what is said of them."""
