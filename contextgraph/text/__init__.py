"""Text made fit to keep: cleaned, masked, fenced, split into words, cut to length."""

from contextgraph.text.cleaning import clean
from contextgraph.text.fencing import fence, strip_fenced
from contextgraph.text.identifiers import words
from contextgraph.text.masking import mask_secrets
from contextgraph.text.quoted import quoted_names, subject_of
from contextgraph.text.tokens import clip, clip_tokens, count_tokens

__all__ = [
    "clean",
    "clip",
    "clip_tokens",
    "count_tokens",
    "fence",
    "mask_secrets",
    "quoted_names",
    "strip_fenced",
    "subject_of",
    "words",
]
