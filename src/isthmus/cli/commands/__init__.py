"""One module per command; the group that lists it imports it when it is called."""
