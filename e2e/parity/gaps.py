"""The known differences between the sandbox and a real server; docs/sandbox.md lists them with their scenarios."""

from __future__ import annotations

UNREADABLE = "Label selectors and continue tokens that cannot be read are refused with other messages."
NOT_ADMITTED = (
    "Without a cluster's admission (the server of `kubectl_ctrl.testing`), a new Pod or PersistentVolumeClaim lacks "
    "what admission adds."
)
SERVICE = "Without a cluster's admission, a new Service has no addresses."
CUSTOM_TYPES = "Values of a wrong type in a custom resource or its status are refused with other messages."
PATCH = (
    "A patch with values of a wrong type, or a strict one with unknown fields, is refused in the words of any other "
    "write."
)
CEL = "CEL rules in CRDs are not evaluated."
NULL = "A null in an applied object counts as absent."
SCALE = "`/scale` does not support apply."
CRD_STATUS = "A dry run of a new CRD shows it with the status that controllers set at once."
