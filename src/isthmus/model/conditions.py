"""Conditions of objects that say whether they do what they say (docs/conditions.md)."""

from __future__ import annotations

from typing import Final

GOOD: Final = frozenset(
    {
        "Accepted", "ResolvedRefs", "Enforced", "Supported", "isthmus.dev/Annotations",
        "isthmus.dev/Supported", "multicluster.isthmus.dev/Federated",
        "multicluster.isthmus.dev/PortsAgree", "multicluster.isthmus.dev/SharesUnderstood",
    }
)  # fmt: skip
"""Conditions that are well while they are True."""
BAD: Final = frozenset(
    {"PartiallyInvalid", "RawPathMatching", "Overlapped", "isthmus.dev/ProxyRejected"}
)
"""Conditions that are well while they are not True."""
CARRIED: Final = "multicluster.isthmus.dev/carried-"
"""What the conditions of members that a policy is carried to begin with: well while True."""


def is_well(name: str, status: str) -> bool:
    """Whether a condition stands as it should; one that is of no concern here is well."""
    if name in BAD:
        return status != "True"
    return status == "True" or not (name in GOOD or name.startswith(CARRIED))
