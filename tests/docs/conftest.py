"""The generator is no part of the package: it is found where it is, in docs/site."""

from __future__ import annotations

import sys

from .commands import ROOT

sys.path.insert(0, str(ROOT / "docs" / "site"))
