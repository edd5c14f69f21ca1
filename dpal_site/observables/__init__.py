"""What can be read from the site by whom and why that is safe, declared once; the manual's table comes from it."""
