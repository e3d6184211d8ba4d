"""The report of a run with a tendon-driven arm; `softcr_tools.report` writes it."""
