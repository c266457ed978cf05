"""A picture of a campaign on the bundled subject: operations a second and coverage over time."""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib
from gallocheck.fuzz.campaign.store import Store

matplotlib.use("Agg")
from matplotlib import pyplot


def campaign(out: Path, seconds: float) -> Path:
    """Runs `gallocheck fuzz` for that long and draws its course; where the picture is."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            Path(sys.executable).with_name("gallocheck"),
            "fuzz",
            "--time",
            f"{seconds:.0f}s",
            "--jobs",
            "1",
        ]
        done = subprocess.run(
            [*map(str, command), "--seed", "1", "--corpus", folder, "--out", folder],
            capture_output=True,
            text=True,
        )
        if done.returncode not in (0, 3):  # 3: some clause was not exercised in so short a time
            raise SystemExit(f"gallocheck fuzz ended with {done.returncode}: {done.stderr or done.stdout}")
        with Store(Path(folder)) as store:
            points = store.points()
    figure, (above, below) = pyplot.subplots(2, 1, sharex=True, figsize=(8, 5))
    pairs = list(itertools.pairwise(points))
    rate = [(b.operations - a.operations) / max(0.1, b.at_s - a.at_s) for a, b in pairs]
    above.plot([b.at_s for _, b in pairs], rate)
    above.set_ylabel("checked operations a second")
    below.plot([p.at_s for p in points], [p.features for p in points])
    below.set_ylabel("features covered")
    below.set_xlabel("seconds")
    path = out / "campaign.svg"
    figure.savefig(path)
    return path
