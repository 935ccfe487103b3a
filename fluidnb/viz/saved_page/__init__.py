"""A program or a debug session as one HTML file that needs no network and no kernel."""
