"""Pictures of a state as rows of (text, role). Pure: no clock, no sampling, no screen library."""
