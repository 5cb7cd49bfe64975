"""Tests across languages."""
