"""What a piece of text is, by name. The screen turns names into styles; nothing else knows colours.

A role never carries a meaning alone: the glyph, the word and the place say the same.
"""

#: The series of a GPU in the order they are drawn: utilization, power, clock, PCIe, memory.
SERIES = ("series1", "series2", "series3", "series4", "series5")

#: Parts of the ledger bar and its legend.
BARS = (
    "bar_busy",
    "bar_slow",
    "bar_wait",
    "bar_peers",
    "bar_foreign",
    "bar_pause",
    "bar_idle",
    "bar_unknown",
)

#: Every role a view may use. "" is plain text.
ROLES = (
    "",
    "title",  # the name of a thing, a verdict's headline
    "heading",  # the rule line over a panel
    "label",
    "value",
    "dim",  # healthy, old or beside the point
    "plot",  # the shape of a healthy series; never text
    "ok",
    "warn",
    "bad",
    "accent",  # what has the focus, where to look next
    "key",
    "selected",  # the row that `enter` opens
    *SERIES,
    *BARS,
)
