"""Settings with the origin of each value, and the directories Cellwright keeps things in.

Knows environment variables, TOML files and the user's folders. Does not know what a setting is
used for.
"""
