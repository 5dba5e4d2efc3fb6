#!/usr/bin/env python3
"""Fails when a commit that is not on main yet puts files back to an older version of them.

That is what a squash without a rebase does (git reset --soft main): it silently undoes what others
landed meanwhile. A commit that means it says so: revert, or for files that go: remove, move, ...
"""
import re
import subprocess

from sources import finish, root_from_argv


GONE = re.compile(r"\b(remove|delete|drop|move|rename|split|merge|replace)", re.I)


def git(root, *arguments):
    done = subprocess.run(["git", "-C", root, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout


def blob(root, commit, file):
    return git(root, "rev-parse", "-q", "--verify", f"{commit}:{file}").strip()


def put_back(root, commit):
    """Files that have, after the commit, a content (or absence) that they had before."""
    message = git(root, "show", "-s", "--format=%B", commit)
    if re.search(r"\brevert", message, re.I):
        return
    changed = git(root, "diff", "--name-status", "--no-renames", f"{commit}^", commit)
    for line in changed.splitlines():
        status, file = line.split("\t")
        if status == "A" or (status == "D" and GONE.search(message)):
            continue
        now = blob(root, commit, file)
        changes = git(root, "rev-list", f"{commit}^", "--", file).split()
        if now in [blob(root, f"{change}^", file) for change in changes]:
            yield file


def main():
    root = root_from_argv()
    bad = []
    for commit in git(root, "rev-list", "main..HEAD").split():
        files = list(put_back(root, commit))
        if len(files) > 1:
            bad.append(f"{commit[:9]} puts {len(files)} files back to an older version: "
                       f"{' '.join(files)}; if that is not meant: git checkout main -- FILES")
    finish("reverts", bad)


main()
