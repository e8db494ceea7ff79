"""The workshop, walked by a program: every command as people type it, and what must be seen then.

What it is: data (chapters of steps, each with commands and sights) and what runs it against a lab.
What it is not: a test of single parts. It types the real commands with the real kubectl, and looks
where people look: at the page, and at what commands print.

    chapters   the story: what is typed, and what must be seen.
    sights     what can be seen: the page's cells, a command's output.
    page       the page of Faces, asked as a browser asks it.
    shell      where `linkerd`, `kubectl`, `docker` mean what they mean in a lab.
    walk       one walk through the chapters.
    k8s        the manifests that are applied, as they are.
"""
