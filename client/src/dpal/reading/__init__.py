"""Reading of files that hold records, for a site and for this package."""
