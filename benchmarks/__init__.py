"""Speed of the library, side by side with other rigid-body libraries: `python -m benchmarks --help`."""
