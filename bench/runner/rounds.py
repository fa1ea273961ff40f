# SPDX-License-Identifier: BSD-2-Clause
# In which order everything runs: A B C A B C ..., so that a drift of the machine meets all alike.
import statistics
import sys
from dataclasses import dataclass, field

from . import bounded

# A contestant that failed so often in one operation and metric is not asked there again: each
# time may cost the whole time limit.
PATIENCE = 2


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

    def advantage(self, name, others):
        """How many times better NAME is than the best of OTHERS; None if it cannot be said."""
        own, best = self.median(name), self.best(others)
        if own is None or best is None:
            return None
        return best[0] / own if self.case.smaller_is_better else own / best[0]


def run(cases, contestants, rounds):
    """A Result for each of CASES."""
    failed = {}
    results = []
    for number, case in enumerate(cases, 1):
        print(f"[{number}/{len(cases)}] {case}", file=sys.stderr, flush=True)
        result = Result(case)
        for _ in range(rounds):
            for contestant in contestants:
                if contestant.supports(case):
                    measure(contestant, result, failed)
        results.append(result)
    return results


def measure(contestant, result, failed):
    name, case = contestant.name, result.case
    topic = (name, case.operation, case.metric)
    if name in result.failures:
        return
    if failed.get(topic, 0) >= PATIENCE:
        result.failures[name] = "not tried after earlier failures"
        return
    try:
        result.values.setdefault(name, []).append(contestant.measure(case))
    except bounded.Failed as failure:
        failed[topic] = failed.get(topic, 0) + 1
        result.failures[name] = str(failure)
        print(f"    {name}: {failure}", file=sys.stderr, flush=True)
