"""Labels for the printer."""

WIDTH = 32


def centred(text, width=WIDTH):
    return text.center(width).rstrip()


def label(address, reference, width=WIDTH):
    """Return the text of a label, one string."""
    rule = "-" * width
    lines = [rule, centred(reference, width), rule]
    lines += [address.name, address.street, f"{address.code} {address.town}"]
    return "\n".join([*lines, rule])
