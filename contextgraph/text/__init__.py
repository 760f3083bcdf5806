"""Text processing: cleaning, masking, fencing, tokens."""

from contextgraph.text.cleaning import (
    clean,
    fence,
    gives_instructions,
    is_id,
    is_plain,
    may_be_fenced,
    one_line,
    plain,
    strip_fenced,
    visible,
)
from contextgraph.text.secrets import mask_after, mask_secrets, masked_name, may_hold_secrets
from contextgraph.text.tokens import (
    clip,
    clip_tokens,
    compiled,
    count_tokens,
    number_of,
    quoted_names,
    stems,
    subject_of,
    words,
)

__all__ = [
    "clean",
    "clip",
    "clip_tokens",
    "compiled",
    "count_tokens",
    "fence",
    "gives_instructions",
    "is_id",
    "is_plain",
    "mask_after",
    "mask_secrets",
    "masked_name",
    "may_be_fenced",
    "may_hold_secrets",
    "number_of",
    "one_line",
    "plain",
    "quoted_names",
    "stems",
    "strip_fenced",
    "subject_of",
    "visible",
    "words",
]
