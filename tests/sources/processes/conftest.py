import sys
from pathlib import Path

# The dictionary tree is shared with the tests of the host.
sys.path.insert(0, str(Path(__file__).parent.parent / "host"))
