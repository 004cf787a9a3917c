"""What the oldest Python has no tools for is not collected there."""

import sys

collect_ignore = (
    ["test_contract.py", "hub/test_hub_contract.py"] if sys.version_info < (3, 11) else []
)
