"""A model that is a program: it needs no key, and does exactly what it is told.

It carries out the tools that a prompt names and a few plain sentences about cells. It writes no
code of its own, and says so when that is what is wanted.
"""
