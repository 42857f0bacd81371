"""What cells print, display and raise: collected, limited, made safe, and described.

Knows MIME types, text and artifacts on disk. Knows no kernels, and no notebooks as files.
"""
