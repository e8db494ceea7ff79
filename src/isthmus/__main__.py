"""`python -m isthmus` is `isthmus`."""

from isthmus.cli import main

main()
