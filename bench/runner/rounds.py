# SPDX-License-Identifier: BSD-2-Clause
# In which order everything runs: all cases, A B C each, and then all of them again, so that a drift
# of the machine meets all alike.
import statistics
import sys
import time
from dataclasses import dataclass, field

from . import bounded
from .targets import FLOORS, VERBS, WEFT

# A contestant that failed so often in the cases of one table is not asked there again: each time
# may cost the whole time limit.
PATIENCE = 2

# A contestant that is so many times worse than the best in the first round is not measured again.
FAR_BEHIND = 3


@dataclass
class Result:
    """What the contestants reached in one case."""

    case: object
    values: dict = field(default_factory=dict)  # name: one figure per round
    failures: dict = field(default_factory=dict)  # name: why there is none

    def median(self, name):
        """The median of NAME's figures, None if a run failed."""
        if name in self.failures or not self.values.get(name):
            return None
        return statistics.median(self.values[name])

    def best(self, names):
        """(figure, name) of the best of NAMES, None if none has one."""
        found = [(self.median(name), name) for name in names if self.median(name) is not None]
        if not found:
            return None
        return (min if self.case.smaller_is_better else max)(found)

    def others(self):
        return [name for name in self.values if name != WEFT and name not in FLOORS]

    def is_far_behind(self, name):
        best = self.best([other for other in self.values if other not in FLOORS])
        ratio = advantage(self.case, best[0], self.median(name)) if best else None
        return ratio is not None and ratio > FAR_BEHIND


def advantage(case, figure, other):
    """How many times better FIGURE is than OTHER; None if it cannot be said."""
    if figure is None or other is None or figure <= 0 or other <= 0:
        return None
    return other / figure if case.smaller_is_better else figure / other


class Rounds:
    """Runs CASES with CONTESTANTS."""

    def __init__(self, cases, contestants):
        self.results = [Result(case) for case in cases]
        self._contestants = contestants
        self._failed = {}  # (name, table): how often
        self._outcomes = {}  # (name, run): what it said in this round, or why nothing

    def round(self, title):
        self._outcomes.clear()
        for number, result in enumerate(self.results, 1):
            print(f"{title} [{number}/{len(self.results)}] {result.case}", file=sys.stderr,
                  flush=True)
            for contestant in self._contestants:
                if contestant.supports(result.case) and self._is_worth_it(contestant.name, result):
                    self._measure(contestant, result)

    def _is_worth_it(self, name, result):
        """A run gives the figures of several cases: it is left out if no case needs it."""
        runs = [other for other in self.results if other.case.run == result.case.run]
        return name in (WEFT, VERBS, *FLOORS) or not all(other.is_far_behind(name) for other in runs)

    def _measure(self, contestant, result):
        name, case = contestant.name, result.case
        if name in result.failures:
            return
        try:
            outcome = self._outcome(contestant, case)
        except bounded.Failed as failure:
            result.failures[name] = str(failure)
            print(f"    {name}: {failure}", file=sys.stderr, flush=True)
            return
        result.values.setdefault(name, []).append(contestant.figure(case, outcome))

    def _outcome(self, contestant, case):
        """What one run said, made if there was none in this round."""
        key, topic = (contestant.name, case.run), (contestant.name, case.run.table)
        if key not in self._outcomes:
            if self._failed.get(topic, 0) >= PATIENCE:
                raise bounded.Failed("not tried after earlier failures")
            try:
                self._outcomes[key] = contestant.run(case)
            except bounded.Failed as failure:
                self._failed[topic] = self._failed.get(topic, 0) + 1
                self._outcomes[key] = failure
        if isinstance(self._outcomes[key], bounded.Failed):
            raise self._outcomes[key]
        return self._outcomes[key]


def run(cases, contestants, count, budget):
    """A Result for each of CASES, and how many rounds there were: COUNT at most, and after the
    first one only such as end within BUDGET seconds if they last as long as the one before."""
    rounds = Rounds(cases, contestants)
    start = time.monotonic()
    for number in range(1, count + 1):
        begin = time.monotonic()
        rounds.round(f"round {number} of {count}")
        now = time.monotonic()
        if now - start + (now - begin) > budget:
            break
    return rounds.results, number
