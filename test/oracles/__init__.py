"""Arms of several segments computed independently of softcr: no line here imports the project."""
