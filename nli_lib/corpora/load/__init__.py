"""Loading: a corpus by name from a local folder or the hub, or a user's own file by path."""
