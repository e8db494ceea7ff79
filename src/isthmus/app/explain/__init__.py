"""`explain`: the way of one request through the mesh, by the cells that proxies are told from.

What it is: names, routes, backends, endpoints and authorizations put in the order in which a
request meets them, each with the object that says so. What it is not: it sends nothing, and knows
nothing that proxies do not know; what they do with the same words is `ir.decide`.

Its words:
    question   who sends what to whom, as text
    client     who sends: a pod, an account or a name that a certificate proves
    way        the lines from the client's proxy to an endpoint, or to where it ends before
    end        one endpoint, and what the proxy there does; one for each cluster that may answer
"""

from isthmus.app.explain.page import PAGE, page
from isthmus.app.explain.question import Question
from isthmus.app.explain.said import End, Explained, Line, Outcome
from isthmus.app.explain.way import explained

__all__ = ["PAGE", "End", "Explained", "Line", "Outcome", "Question", "explained", "page"]
