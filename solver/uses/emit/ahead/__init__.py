"""C of plans whose transfers run ahead: the processor queues transfers and waits for them as the plan's queue says.

whole.py      what lies on chip from which step to which: rows of maps, filters
placing.py    addresses for it
addressed.py  plans that leave room for them
files.py      the text: a file for every layer or group, and one with the timeline
"""
