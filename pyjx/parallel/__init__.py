"""Programs for each device of a mesh: `shard_map`, and `pmap`, which is made of it."""
