"""Credentials of a request: tokens, certificates, credential plugins, OpenID Connect."""
