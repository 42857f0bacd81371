"""What a verb is asked and answers, as values, and how requests are carried out in this process.

It knows the shapes of requests and answers. It does not know how a verb works.
"""
