"""Faces: a small application whose every failure can be seen, to show what a mesh does about it.

What it is: five programs, started as `python -m isthmus.lab.faces NAME` (or
`python -m isthmus.lab.faces.NAME`) and set up by their environment, as containers are. What it is
not: it knows nothing of the mesh, and no part of Isthmus uses it; a lab runs it as pods.

    gui      the page, and the way from it to `face`
    face     one face: asks `smiley` and `color` at once, and says what they said
    smiley   which smiley, over HTTP
    color    which color, over gRPC
    load     asks something at a steady rate

They stand on the standard library alone (and gRPC where it is spoken), because a lab runs many of
them: a smiley is up in a tenth of a second and takes 20 MB.

    trouble  the failures that one can ask for, without I/O
    http     HTTP/1.1, as much as is needed
    legend   what the page draws for which answer
"""
