"""What hack/realkube runs."""

from __future__ import annotations

import sys

from realkube.cli import main

sys.exit(main(sys.argv[1:]))
