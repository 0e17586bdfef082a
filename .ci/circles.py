#!/usr/bin/env python3
"""Fails where files of a crate import each other in a circle: circles.py [CRATE_FOLDER…], by default all crates.

An arrow is a path of a `use` or of the code that leads into another file of the crate, through re-exports to where the item is.
A module may re-export what is below it. Test modules do not count."""
import glob
import os
import re
import sys


def without_tests_and_comments(text):
    kept, lines, at = [], text.split("\n"), 0
    while at < len(lines):
        if lines[at].startswith("#[cfg(test)]") and at + 1 < len(lines) and re.match(r"mod \w+ \{", lines[at + 1]):
            while at < len(lines) and lines[at] != "}":
                at += 1
        else:
            kept.append(re.sub(r"//.*", "", lines[at]))
        at += 1
    return "\n".join(kept)


def paths_of(tree):
    """The paths of a use tree, its braces expanded."""
    match = re.match(r"^(.*?)\{(.*)\}$", tree.strip(), re.S)
    if not match:
        return [re.sub(r"\s+as\s+\w+$", "", tree.strip())]
    parts, depth, part = [], 0, ""
    for character in match.group(2):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += character
    return [match.group(1) + path for part in parts + [part] if part.strip() for path in paths_of(part)]


def modules_of(crate):
    """The text of each file of a crate by the path of its module."""
    modules, source = {}, os.path.join(crate, "src")
    for folder, _, names in os.walk(source):
        parts = os.path.relpath(folder, source).split(os.sep)
        if parts[0] == "bin" or "tests" in parts:
            continue
        for name in names:
            if name.endswith(".rs") and name not in ("main.rs", "tests.rs"):
                path = os.path.relpath(os.path.join(folder, name), source)[:-3].split(os.sep)
                path = tuple(path[:-1] if path[-1] in ("lib", "mod") else path)
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    modules[path] = without_tests_and_comments(file.read())
    return modules


def resolve(modules, at, path):
    """The module that a path seen in `at` leads into, and the item in it; None for other crates."""
    names = [name.strip() for name in path.split("::")]
    if names[0] == "crate":
        module, names = (), names[1:]
    elif names[0] in ("self", "super"):
        module = at
        while names and names[0] in ("self", "super"):
            module = module if names[0] == "self" else module[:-1]
            names = names[1:]
    elif at + (names[0],) in modules:
        module = at
    else:
        return None
    while names and module + (names[0],) in modules:
        module, names = module + (names[0],), names[1:]
    return module, (names[0] if names else "")


def arrows_of(modules):
    uses, exported = {}, {}
    for module, text in modules.items():
        found = uses[module] = []
        for use in re.finditer(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", text):
            found += [(bool(use.group(1)), path) for path in paths_of(use.group(2))]
        code = re.sub(r"\buse\s+[^;]+;", "", text)
        children = [child[-1] for child in modules if len(child) == len(module) + 1 and child[:-1] == module]
        starts = "|".join(["crate", "super", "self"] + children)
        found += [(False, path) for path in re.findall(r"(?<![:\w])(?:%s)(?:::\w+)+" % starts, code)]
        for is_public, path in found:
            target = resolve(modules, module, path)
            if is_public and target and target[1] and target[0] != module:
                exported[module, target[1]] = target[0]
    arrows = {module: {} for module in modules}
    for module, found in uses.items():
        for is_public, path in found:
            target, item = resolve(modules, module, path) or (module, "")
            seen = set()
            while (target, item) in exported and (target, item) not in seen:
                seen.add((target, item))
                target = exported[target, item]
            if target in modules and target != module and not (is_public and target[:len(module)] == module):
                arrows[module].setdefault(target, set()).add(item)
    return arrows


def circles_of(arrows):
    """The strongly connected components of more than one module (Tarjan 1972)."""
    index, low, stack, circles = {}, {}, [], []

    def visit(module):
        index[module] = low[module] = len(index)
        stack.append(module)
        for target in arrows[module]:
            if target not in index:
                visit(target)
            if target in stack:
                low[module] = min(low[module], low[target])
        if low[module] == index[module]:
            circle = [stack.pop()]
            while circle[-1] != module:
                circle.append(stack.pop())
            if len(circle) > 1:
                circles.append(sorted(circle))

    for module in arrows:
        if module not in index:
            visit(module)
    return circles


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    crates = sys.argv[1:] or [os.path.dirname(file) for file in glob.glob("**/Cargo.toml", recursive=True)]
    count = 0
    for crate in sorted(crate for crate in crates if not crate.startswith("target")):
        arrows = arrows_of(modules_of(crate or "."))
        for circle in circles_of(arrows):
            count += 1
            print("%s: %d files import each other:" % (crate or "sizeleak", len(circle)))
            for module in circle:
                for target in circle:
                    if target in arrows[module]:
                        names = ["::".join(path) or "lib" for path in (module, target)]
                        print("  %s -> %s: %s" % (*names, ", ".join(sorted(filter(None, arrows[module][target])))))
    sys.exit(1 if count else 0)


main()
