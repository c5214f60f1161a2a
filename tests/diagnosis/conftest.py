"""Makes `build` importable from the tests of this folder and below."""
