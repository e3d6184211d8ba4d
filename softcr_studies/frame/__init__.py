"""The frame of studies: cells, runner, tables, pages, and the `softcr study` command."""
