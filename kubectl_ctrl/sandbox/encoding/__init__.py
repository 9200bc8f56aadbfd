"""Bodies in and out: which form a client sends and which it accepts.

bodies    the bytes of a request become an object: JSON, YAML or protobuf, with the fields that occur twice
syntax    errors in JSON, in the words of Go's decoder
protobuf  messages of the API, read by a table of their fields
forms     the form of an answer: the object, its metadata alone, or a Table; JSON or YAML
tables    columns and rows of a Table
cells     the cells of the built-in kinds
"""
