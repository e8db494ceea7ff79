"""What the commands of `isthmus multicluster` share: names, facts of a cluster, objects to print.

Object names, labels and annotations are those of Linkerd's multicluster extension, so that people,
GitOps repositories and programs that know it find what they look for.

    names      names, labels, annotations, selectors.
    facts      what a cluster says of itself: ConfigMap linkerd-config.
    install    the objects of `install`.
    link       the objects of `link` and `link-gen`.
    documents  how objects are printed.
    checks     the checks of `multicluster check`.
"""
