"""The command line: `isthmus COMMAND`.

What it is: words, flags and help over what other rooms do. What it is not: it holds no logic that a
program would want too. Each command is a module of `cli.commands`, imported when it is called, so
that `isthmus --help` is there at once.

    entry     main(): runs the root command, ends the process with 0, 1 or 2.
    group     lazily imported commands, and the nearest name for a misspelt one.
    options   flags that every level takes; booleans as Go programs write them.
    output    `-o table|json|yaml|...`.
    failure   the one way in which things go wrong.
    kubeconfig, cluster   the API server of a context, and what it says of a control plane.
    gojson    messages as Go's plain JSON has them.
"""

from isthmus.cli.entry import main

__all__ = ["main"]
