"""Solves instances with CP-SAT: reads JSON lines from stdin, and writes JSON lines to stdout.

`count` is the number of multisets of actions that make up the sum, with a device of its own for each action. `best` is the
best score of one: the sum of integer scores for the nth of each action and for the number of actions.
"""

import json
import sys

from ortools.sat.python import cp_model


class Multisets(cp_model.CpSolverSolutionCallback):
    def __init__(self, counts):
        super().__init__()
        self.counts, self.found = counts, set()

    def on_solution_callback(self):
        self.found.add(tuple(self.value(count) for count in self.counts))


def model_of(instance):
    """The number of each action, as the sum over the kinds of device of how many of them take it."""
    model, by_action = cp_model.CpModel(), [[] for _ in instance["sizes"]]
    for devices, actions in instance["kinds"]:
        taken = [model.new_int_var(0, devices, "") for _ in actions]
        model.add(sum(taken) <= devices)
        for action, variable in zip(actions, taken):
            by_action[action].append(variable)
    most = sum(devices for devices, _ in instance["kinds"])
    counts = [model.new_int_var(0, most, "") for _ in instance["sizes"]]
    for count, taken in zip(counts, by_action):
        model.add(count == sum(taken))
    model.add(sum(count * size for count, size in zip(counts, instance["sizes"])) == instance["sum"])
    return model, counts, most


def count(instance):
    model, counts, _ = model_of(instance)
    solver, found = cp_model.CpSolver(), Multisets(counts)
    solver.parameters.enumerate_all_solutions = True
    status = solver.solve(model, found)
    assert status in (cp_model.OPTIMAL, cp_model.INFEASIBLE), status
    return len(found.found)


def best(instance):
    model, counts, most = model_of(instance)
    score = []
    for variable, nth_scores in zip(counts, instance["scores"]):
        chosen = [model.new_bool_var("") for _ in range(most)]
        model.add(variable == sum(chosen))
        for nth, after in zip(chosen, chosen[1:]):
            model.add_implication(after, nth)
        score += [value * literal for value, literal in zip(nth_scores, chosen)]
    number = [model.new_bool_var("") for _ in range(most + 1)]
    model.add_exactly_one(number)
    model.add(sum(counts) == sum(at * literal for at, literal in enumerate(number)))
    score += [value * literal for value, literal in zip(instance["number_scores"], number)]
    model.maximize(sum(score))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    assert status in (cp_model.OPTIMAL, cp_model.INFEASIBLE), status
    return round(solver.objective_value) if status == cp_model.OPTIMAL else None


for line in sys.stdin:
    task = json.loads(line)
    print(json.dumps({"count": count(task), "best": best(task) if task["scores"] else None}), flush=True)
