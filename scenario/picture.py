"""Memory over time as a picture: a panel a card, a line a setting."""

from __future__ import annotations

from pathlib import Path

from .report import Curve, Report

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  #: told apart by colour-blind people too
STYLES = ("-", "--", "-.", ":")


def draw(report: Report, path: Path) -> None:
    """Writes the picture (PNG) of a scenario's curves. Raises OSError where the file cannot be written."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = list(dict.fromkeys(curve.panel for curve in report.curves))
    figure, axes = pyplot.subplots(
        len(panels), 1, figsize=(9, 1.2 + 3.2 * len(panels)), squeeze=False, layout="constrained"
    )
    for axis, panel in zip(axes[:, 0], panels, strict=True):
        mine = [curve for curve in report.curves if curve.panel == panel]
        for n, curve in enumerate(mine):
            axis.step(range(1, len(curve.mib) + 1), curve.mib, where="post", label=curve.name,
                      color=COLOURS[n % 4], linestyle=STYLES[n % 4], linewidth=1.8)  # fmt: skip
            for at in curve.refused:
                axis.plot(at + 1, curve.mib[at], "x", color=COLOURS[n % 4], markersize=9, markeredgewidth=2)
                axis.annotate("refused", (at + 1, curve.mib[at]), xytext=(8, -12), textcoords="offset points",
                              fontsize=9, color=COLOURS[n % 4])  # fmt: skip
        for name, mib in report.limits.items():
            axis.axhline(mib, color="0.4", linewidth=1, linestyle=":")
            axis.annotate(name, (1, mib), xytext=(0, 2), textcoords="offset points", fontsize=8, color="0.3")
        low, high = bounds(mine, report.limits)
        axis.set_ylim(low, high)
        axis.set_title(panel, loc="left", fontsize=10)
        axis.set_ylabel("MiB in use" + ("" if low <= 0 else " (axis not from 0)"))
        axis.set_xlabel("operation")
        axis.grid(axis="y", color="0.9")
        axis.spines[["top", "right"]].set_visible(False)
        if len(mine) > 1:
            axis.legend(frameon=False, fontsize=9, loc="best")
    figure.suptitle(report.title, fontsize=11)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def bounds(curves: list[Curve], limits: dict[str, float]) -> tuple[float, float]:
    """What is worth seeing: from where the curves are once all is loaded to their highest, with some room."""
    late = [mib for curve in curves for mib in curve.mib[len(curve.mib) // 2 :]]
    top = max([*(mib for curve in curves for mib in curve.mib), *limits.values()])
    room = max(4.0, 0.15 * (top - min(late)))
    return max(0.0, min(late) - room), top + room
