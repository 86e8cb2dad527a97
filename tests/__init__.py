"""Tests, at the path of what they test."""
