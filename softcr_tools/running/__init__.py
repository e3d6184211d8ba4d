"""Running a system: options, the systems themselves, what this machine can do."""
