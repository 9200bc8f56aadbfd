"""HTTP/1.1 over TLS for any transport: what a client sends becomes its requests, and its answers become bytes.

parser       bytes to requests; refuses everything that two readers could understand differently
responses    an answer as bytes; the refusals that need no API server
connection   one connection: requests in order, streams in chunks, a slow or absent client
server       the listening socket, the limits, and the end

Belongs here: the protocol, and its limits. Does not belong here: users, media types, and everything else that a header
or a path means to the API server.
"""
