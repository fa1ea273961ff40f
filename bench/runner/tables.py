# SPDX-License-Identifier: BSD-2-Clause
# How results are shown: Markdown tables.
from .cases import size_text
from .targets import BARS, RIVALS, TARGETS, verdict

WEFT = "weft"

TITLES = {
    "latency": "latency (us)",
    "poll_latency": "latency, the target watches memory (us)",
    "rate": "rate (millions per second)",
    "bandwidth": "bandwidth (GB/s)",
}


def table(header, rows):
    """A Markdown table; every column but the first to the right."""
    lines = ["| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def number(value):
    if value is None:
        return "-"
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def ratio(value):
    return "-" if value is None else f"{value:.2f}"


def figures_table(results, names):
    rows = []
    for result in results:
        best = result.best(RIVALS)
        rows.append([size_text(result.case.size), *(number(result.median(n)) for n in names),
                     ratio(result.advantage(WEFT, RIVALS)), best[1] if best else "-"])
    return table(["size", *names, "weft better by", "than"], rows)


def all_figures(results, names):
    """One section for each operation and metric."""
    sections = {}
    for result in results:
        sections.setdefault((result.case.operation, result.case.metric), []).append(result)
    return "\n\n".join(
        f"#### {operation}: {TITLES[metric]}\n\n" + figures_table(group, names)
        for (operation, metric), group in sections.items())


def targets_table(results):
    by_case = {result.case: result for result in results}
    rows = []
    for target in TARGETS:
        result = by_case.get(target.case)
        reached = result.advantage(WEFT, target.rivals) if result else None
        best = result.best(target.rivals) if result else None
        met = None if reached is None else reached >= target.factor
        rows.append([target.text, number(result.median(WEFT) if result else None),
                     f"{number(best[0])} ({best[1]})" if best else "-", f"{target.factor:.1f}",
                     ratio(reached), verdict(met)])
    return table(["target", "weft", "best of " + " and ".join(RIVALS), "wanted ratio",
                  "measured ratio", "met?"], rows)


def bars_table(results):
    by_case = {result.case: result for result in results}
    rows = []
    for bar in BARS:
        own = by_case[bar.case].median(WEFT) if bar.case in by_case else None
        better = None
        if own is not None:
            better = own <= bar.figure if bar.case.smaller_is_better else own >= bar.figure
        rows.append([f"{bar.text} ({bar.case.unit})", f"{number(own)}", f"{bar.figure}",
                     verdict(better)])
    return table(["bar of the field", "weft", "today's UCX", "passed?"], rows)
