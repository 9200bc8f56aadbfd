"""`python -m kubectl_ctrl`."""

from __future__ import annotations

import sys

from kubectl_ctrl.cli.main import main

sys.exit(main())
