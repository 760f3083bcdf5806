"""Text processing: cleaning, masking, fencing, tokens."""

from contextgraph.text.cleaning import (
    clean as clean,
    cut as cut,
    fence as fence,
    gives_instructions as gives_instructions,
    is_id as is_id,
    is_plain as is_plain,
    may_be_fenced as may_be_fenced,
    one_line as one_line,
    plain as plain,
    strip_fenced as strip_fenced,
    visible as visible,
)
from contextgraph.text.secrets import (
    mask_after as mask_after,
    mask_secrets as mask_secrets,
    masked_name as masked_name,
    may_hold_secrets as may_hold_secrets,
)
from contextgraph.text.tokens import (
    clip as clip,
    clip_tokens as clip_tokens,
    compiled as compiled,
    count_tokens as count_tokens,
    number_of as number_of,
    quoted_names as quoted_names,
    stem as stem,
    stems as stems,
    subject_of as subject_of,
    words as words,
)
