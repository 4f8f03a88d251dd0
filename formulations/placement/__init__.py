"""F9 placement: addresses for buffers in a memory, so that those that live at the same time do not overlap.

Sets        buffers i; times t, whole numbers
Parameters  size[i, t] bytes while i lives, from begin[i] to before end[i]; capacity C
Variables   address[i]
Constraints 0 <= address[i], address[i] + size[i, t] <= C
            (APART) for i, j and t in which both live: address[i] + size[i, t] <= address[j], or the reverse

An example: a lives at times 0 and 1 with 4 bytes, b with 6 and then 2, c at time 1 with 4. In 10 bytes a lies at 0, b
at 4, and c at 6: when b has lost its last 4 bytes there is room behind it.
"""
