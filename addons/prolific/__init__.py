"""Studies on a crowd platform: opened, published, followed, approved and paid by its interface."""
