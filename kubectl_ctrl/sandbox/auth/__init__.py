"""Who asks, for whom, and whether they may.

users          a user and its groups
attributes     what a request asks for, as rules name it, and the words of its refusal
tokens         bearer tokens, and those of ServiceAccounts
impersonation  a request in the name of another user
rbac           roles and bindings decide
escalation     nobody grants more than they have
guard          these steps in their order, before each request, and its record after it
reviews        the resources that only answer: access reviews, TokenReview, TokenRequest
controllers    aggregated roles, and the Secrets with tokens
bootstrap      the roles and bindings of a new cluster
"""
