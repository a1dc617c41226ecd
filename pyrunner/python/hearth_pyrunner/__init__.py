"""The Python side of Hearth: template processes that fork, and what their children do.

Standard library only. Nothing here runs a user's call in a template process.
"""
