"""Makes the sources of the docs site from the project itself: `python -m generate OUT`, see __main__.py."""
