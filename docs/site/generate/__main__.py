"""Makes the sources of the site: python -m generate OUT [--without-proofs]

`--without-proofs`: says on every page that the prover was not run, in place of its times. For tests of all else.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

from gallocheck.spec.clauses import CLAUSES
from gallocheck.spec.machines import MACHINES

from . import branches, clauses, cli, interface, machines, pictures, proofs, prose, replay_format

SITE = Path(__file__).parents[1]


def write(out: Path, prove: bool = True) -> None:
    """Everything below `out`, which is emptied first."""
    shutil.rmtree(out, ignore_errors=True)
    began = time.perf_counter()

    def say(what: str) -> None:
        print(f"{time.perf_counter() - began:5.1f} s  {what}", flush=True)

    prose.write(out)
    rows = proofs.proved() if prove else None
    say(f"{len(rows)} clauses proved" if rows else "not proved anew")
    material = clauses.Material(rows, tuple(pictures.all_planted()))
    say(f"{len(material.planted)} planted defects found again")
    pages = {f"clauses/{c.id}": clauses.clause_page(c, material) for c in CLAUSES}
    pages["clauses/index"] = clauses.index()
    say(f"{len(CLAUSES)} clauses written")
    pages |= {f"machines/{proofs.slug(m)}": machines.machine_page(m, rows) for m in MACHINES}
    pages["machines/index"] = machines.index(rows)
    pages |= {f"branches/{name}": text for name, text in branches.pages().items()}
    pages["reference/cli"] = cli.cli_page()
    pages["reference/replay"] = replay_format.replay_page()
    pages["reference/interface"] = interface.interface_page()
    for name, text in pages.items():
        path = out / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shutil.copyfile(SITE / "conf.py", out / "conf.py")
    static = out / "_static"
    shutil.copytree(SITE / "static", static)
    (static / "picture.css").write_text(pictures.style())
    say(f"{len(pages)} pages made")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--without-proofs", action="store_true")
    given = parser.parse_args()
    write(given.out, not given.without_proofs)


if __name__ == "__main__":
    main()
