# SPDX-License-Identifier: BSD-2-Clause
"""What did a list of waivers hold before the change at hand?"""
import subprocess


def git_show(root, revision, path):
    """A file of a commit, or None."""
    done = subprocess.run(['git', '-C', str(root), 'show', f'{revision}:{path}'],
                          capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def earlier(root, path, current, parse):
    """What parse() reads in HEAD when that differs from the tree, else in its parent; None when
    there is none."""
    head = git_show(root, 'HEAD', path)
    text = head if head is not None and head != current else git_show(root, 'HEAD~1', path)
    return None if text is None else parse(text)
