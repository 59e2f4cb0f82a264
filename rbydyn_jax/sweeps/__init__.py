"""Sweeps over the tree: forward, backward and over all bodies; see README.md."""
