"""A campaign on a Dask cluster of real processes finds what it finds here, also where one is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import distributed
import pytest
from distributed import LocalCluster
from gallocheck.fuzz.campaign.cluster import Cluster
from gallocheck.fuzz.campaign.errors import CampaignError
from gallocheck.fuzz.campaign.run import Campaign
from gallocheck.fuzz.campaign.store import Store

from tests.cli.running import gallocheck

from .processes import LIBRARY, Work, come, end
from .test_command import without_canaries
from .test_killed import DEFECT, accounts


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        yield cluster


def test_one_worker_is_killed(cluster: LocalCluster, tmp_path: Path) -> None:
    far, here = (Work(tmp_path / where, 12, DEFECT, ops=60) for where in ("far", "here"))
    with Store(far.at / "corpus") as store, Cluster(cluster.scheduler_address, LIBRARY) as pool:
        assert pool.size == 2
        before = set(pool.client.run(os.getpid).values())
        victim = min(before)

        def kill() -> None:
            until = time.monotonic() + 60
            while come(far.at) < 3 and time.monotonic() < until:
                time.sleep(0.01)
            end({victim})

        killer = threading.Thread(target=kill)
        killer.start()
        assert Campaign(store, pool, far.plan).run()
        killer.join()
        assert victim not in set(pool.client.run(os.getpid).values())
    here.run()
    assert accounts(far) == accounts(here)


def test_the_command(cluster: LocalCluster, tmp_path: Path) -> None:
    without_canaries(tmp_path)
    args = (
        "fuzz",
        "--defect",
        DEFECT,
        "--seed",
        5,
        "--batch-ops",
        100,
        "--batches",
        4,
        "--shrink-time",
        "1s",
    )
    done = gallocheck(*args, "--cluster", cluster.scheduler_address, at=tmp_path)
    assert done.returncode == 1 and "4 batches" in done.stdout, done
    on = gallocheck(*args, "--jobs", 1, at=tmp_path)
    assert on.returncode == 1 and "goes on after" in on.stdout, "the campaign is the same, here or there"


def test_a_scheduler_that_goes_away(tmp_path: Path) -> None:
    """One sentence; what was found until then is kept."""
    work = Work(tmp_path, 10_000, 0, ops=60)
    scheduler, worker = (
        subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_" + name, *map(str, args)],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name, args in (
            ("scheduler", ("--scheduler-file", tmp_path / "address", "--port", 0, "--dashboard-address", ":0")),
            ("worker", ("--scheduler-file", tmp_path / "address", "--nthreads", 1, "--no-dashboard")),
        )
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "address").exists() and time.monotonic() < until:
            time.sleep(0.05)
        address = json.loads((tmp_path / "address").read_text())["address"]
        with distributed.Client(address) as client:
            client.wait_for_workers(1, timeout=60)
        with Store(work.at / "corpus") as store, Cluster(address, LIBRARY) as pool:

            def stop() -> bool:
                if come(work.at) >= 2 and scheduler.poll() is None:
                    scheduler.kill()
                return False

            with pytest.raises(CampaignError, match=r"went away .* goes on when it is back"):
                Campaign(store, pool, work.plan).run(stop=stop)
            assert store.counts["batches"] >= 2
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()


def test_no_cluster(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match="No Dask scheduler answers at nonsense"):
        Cluster("nonsense", LIBRARY)
    with (
        LocalCluster(n_workers=0, processes=True, dashboard_address=":0") as empty,
        pytest.raises(CampaignError, match="has no workers"),
    ):
        Cluster(empty.scheduler_address, LIBRARY)
