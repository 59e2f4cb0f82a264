"""What XLA:CPU does to small programs, and the few primitives that undo it; see README.md. No robot in here."""
