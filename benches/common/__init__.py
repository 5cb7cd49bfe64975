"""The common parts of benches."""
