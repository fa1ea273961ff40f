# SPDX-License-Identifier: BSD-2-Clause
# How results are shown: Markdown tables.
from dataclasses import replace

from .rounds import advantage
from .targets import BARE, BARS, FLOOR_SHARE, GOALS, TARGETS, VERBS, VERBS_SHARE, WEFT, verdict

FAILED = "failed"


def table(header, rows):
    """A Markdown table; every column but the first to the right."""
    lines = ["| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def number(value):
    if value is None:
        return "-"
    if value == 0:
        return "0"
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def cell(result, name):
    """NAME's figure, or why there is none."""
    return FAILED if name in result.failures else number(result.median(name))


def ratio(value):
    return "-" if value is None else f"{value:.2f}"


def figures_table(results, names):
    rows = []
    for result in results:
        best = result.best(result.others())
        better = advantage(result.case, result.median(WEFT), best[0]) if best else None
        rows.append([result.case.row, *(cell(result, n) for n in names), ratio(better),
                     best[1] if best else "-"])
    return table(["", *names, "weft better by", "than"], rows)


def all_figures(results, names):
    """One section for each table."""
    sections = {}
    for result in results:
        sections.setdefault(result.case.table, []).append(result)
    return "\n\n".join(f"#### {group[0].case.title}\n\n" + figures_table(group, names)
                       for group in sections.values())


def scatter(results):
    """How far the rounds lie apart: (highest - lowest) / median of each figure, in ascending order."""
    return sorted((max(values) - min(values)) / result.median(name)
                  for result in results for name, values in result.values.items()
                  if len(values) > 1 and result.median(name))


def reference(target, by_case):
    """(figure, name) that TARGET is held against, None if there is none."""
    result = by_case.get(target.itself_in or target.case)
    if result is None:
        return None
    return result.best([WEFT] if target.itself_in else result.others())


def targets_table(results):
    by_case = {result.case: result for result in results}
    rows = []
    for target in (target for target in TARGETS if target.case in by_case):
        own = by_case[target.case].median(WEFT)
        other = reference(target, by_case)
        reached = advantage(target.case, own, other[0]) if other else None
        met = None if reached is None else reached >= target.factor
        rows.append([target.text, number(own), f"{number(other[0])} ({other[1]})" if other else "-",
                     ratio(target.factor), ratio(reached), verdict(met)])
    return table(["target", "weft", "held against", "wanted ratio", "measured ratio", "met?"], rows)


def bars_table(results):
    by_case = {result.case: result for result in results}
    rows = []
    for bar in (bar for bar in BARS if bar.case in by_case):
        own = by_case[bar.case].median(WEFT)
        better = None
        if own is not None:
            better = own <= bar.figure if bar.case.smaller_is_better else own >= bar.figure
        rows.append([f"{bar.text} ({bar.case.unit})", f"{number(own)}", f"{bar.figure}",
                     verdict(better)])
    return table(["bar of the field", "weft", "today's UCX", "passed?"], rows)


def threads_table(results):
    """Each model beside FI_THREAD_DOMAIN, and two threads beside one."""
    by_case = {result.case: result for result in results}
    rows = []
    for case, result in by_case.items():
        other = replace(case, threads=1) if case.threads > 1 else replace(case, threading="domain")
        if other == case or other not in by_case:
            continue
        reached = advantage(case, result.median(WEFT), by_case[other].median(WEFT))
        rows.append([f"{case.title}, {case.row}", cell(result, WEFT), other.row, cell(by_case[other], WEFT), ratio(reached)])
    return table(["", WEFT, "held against", WEFT, "better by"], rows)


def verbs_table(results):
    """Queue pairs beside connections."""
    rows = []
    for result in results:
        share = advantage(result.case, result.median(VERBS), result.median(WEFT))
        if share is not None:
            rows.append([f"{result.case.title}, {result.case.row}", cell(result, WEFT), cell(result, VERBS), ratio(share),
                         verdict(share >= VERBS_SHARE)])
    return table(["", WEFT, VERBS, "verbs better by", f"{VERBS_SHARE} reached?"], rows)


def goals_table(results):
    """Queue pairs within a host beside what they are to reach, and beside their floors."""
    by_case = {result.case: result for result in results}
    rows = []
    for goal in (goal for goal in GOALS if goal.case in by_case):
        result, other = by_case[goal.case], by_case.get(goal.in_case or goal.case)
        own, best = result.median(VERBS), other.best(goal.against) if other else None
        floor = result.median(BARE) or (best and best[0])
        reached, share = advantage(goal.case, own, best and best[0]), advantage(goal.case, own, floor)
        met = None if reached is None else reached >= goal.factor or share is not None and share >= FLOOR_SHARE
        rows.append([f"{goal.text} ({goal.case.unit})", cell(result, VERBS), f"{number(best[0])} ({best[1]})" if best else "-", ratio(goal.factor),
                     ratio(reached), number(floor), ratio(share), verdict(met)])
    return table(["goal", VERBS, "held against", "wanted ratio", "measured ratio", "floor", "of the floor", "met?"], rows)
