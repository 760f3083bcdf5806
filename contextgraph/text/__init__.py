"""Text processing: cleaning, masking, fencing, tokens."""

from contextgraph.text.masking import *
from contextgraph.text.strings import *
