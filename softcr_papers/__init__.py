"""Methods and experiments of papers, a folder each; nothing outside imports them."""
