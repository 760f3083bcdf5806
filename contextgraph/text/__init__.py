"""Text made fit to keep: cleaned, masked, fenced, split into words, cut to length."""

from contextgraph.text.cleaning import clean, is_plain
from contextgraph.text.fencing import fence, may_be_fenced, strip_fenced
from contextgraph.text.identifiers import words
from contextgraph.text.masking import mask_secrets, may_hold_secrets
from contextgraph.text.numbers import number_of
from contextgraph.text.quoted import quoted_names, subject_of
from contextgraph.text.tokens import clip, clip_tokens, count_tokens

__all__ = [
    "clean",
    "clip",
    "clip_tokens",
    "count_tokens",
    "fence",
    "is_plain",
    "mask_secrets",
    "may_be_fenced",
    "may_hold_secrets",
    "number_of",
    "quoted_names",
    "strip_fenced",
    "subject_of",
    "words",
]
