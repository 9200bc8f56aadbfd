"""A Kubernetes API server in one Python process, with the controllers of a cluster.

A request's way, from the top; each step is a folder or file of this room:

http         bytes on a connection become requests, and answers become bytes; TLS
auth         who asks (token), for whom (impersonation), and whether they may (RBAC)
requests     a path and a method become a verb, a resource type, an object and options
encoding     a body becomes an object (JSON, YAML, protobuf), and an object an answer (JSON, Table, metadata alone)
reads        get and list, also of earlier states
watches      the changes after a version, as they happen
drafts       create, update, patch, apply and delete, computed: the stored object and the request make a new object
intake       the new object without unknown fields, with defaults, and checked
admission    what a whole cluster adds to new pods, services and claims
writes       drafts, admitted and committed; or computed again if the object changed meanwhile
rules        the fields that only the server writes; generation, finalizers, versions
fields       patches, and the owner of every field
kinds        the built-in types as data: schemas, defaults, stored forms, checks
crds         the types that CustomResourceDefinitions add
storage      every object and the log of every change, numbered by one counter
controllers  what kube-controller-manager and the kubelets do
discovery    which types there are; `openapi` has their schemas
answers      refusals in the words of a kube-apiserver

server is the way of a request through these; endpoint adds the watches; cluster adds the first objects and the
controllers; process serves a cluster from a folder, with its certificates and its journal.

Belongs here: everything that kube-apiserver and kube-controller-manager do. Does not belong here: anything that a
client does; this room and `client` share only `model` and meet on the wire, so that each tests the other.
"""
