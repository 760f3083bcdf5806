"""Text processing: cleaning, masking, fencing, tokens."""

from contextgraph.text.strings import *
