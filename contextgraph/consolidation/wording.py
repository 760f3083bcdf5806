"""Who worded a methodology, and whether these words still hold.

The words of a model stand below what was counted, in lines of their own: the counts change with
every run, the words only with the remedies. `Methodology.made_by` names the template, or the model,
the version of its prompt and a fingerprint of the remedies; while the model has not answered, or
after an unusable answer, the template with that in brackets.
"""

from dataclasses import replace
from hashlib import blake2b

from contextgraph.model import Methodology, MethodologyStatus, Words
from contextgraph.ports import ModelSummarizer

_WAITING = " (waits for {})"
_UNUSABLE = " ({}: unusable answer)"


def with_words_of(before: Methodology | None, now: Methodology) -> Methodology:
    """*now* in the words of *before*, where its remedies are still the same."""
    if before is None or fingerprint(now) not in before.made_by:
        return now
    _, *words = before.strategy.split("\n")
    if not words:
        _, bracket, why = before.made_by.partition(" (")
        return replace(now, made_by=f"{now.made_by}{bracket}{why}")
    return replace(
        now,
        situation=before.situation,
        strategy="\n".join((_counts(now), *words)),
        made_by=before.made_by,
    )


def needs_words(methodology: Methodology, model: ModelSummarizer) -> bool:
    """True where *model* has not answered yet for the remedies as they are now."""
    return methodology.status is not MethodologyStatus.RETIRED and (
        _mark(methodology, model) not in methodology.made_by
        or methodology.made_by == waiting(methodology, model).made_by
    )


def worded(methodology: Methodology, words: Words, model: ModelSummarizer) -> Methodology:
    """*methodology* in the *words* of *model*, below what was counted."""
    lines = [_counts(methodology), f"How: {words.strategy}"]
    if words.not_when:
        lines.append(f"Not when: {words.not_when}")
    return replace(
        methodology,
        situation=words.situation,
        strategy="\n".join(lines),
        made_by=_mark(methodology, model),
    )


def unusable(methodology: Methodology, model: ModelSummarizer) -> Methodology:
    """*methodology* as it is; the answers of *model* cannot be used."""
    return _marked(methodology, _UNUSABLE.format(_mark(methodology, model)))


def waiting(methodology: Methodology, model: ModelSummarizer) -> Methodology:
    """*methodology* as it is, to be worded once *model* answers."""
    return _marked(methodology, _WAITING.format(_mark(methodology, model)))


def fingerprint(methodology: Methodology) -> str:
    """The same while it has the same remedies in the same order."""
    remedies = [
        (one.kind.value, one.target, one.replaced, one.pattern) for one in methodology.remedies
    ]
    content = f"{methodology.id}\n{remedies}"
    return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _counts(methodology: Methodology) -> str:
    """The first line of the strategy, which the template made of the counts."""
    return methodology.strategy.split("\n", 1)[0]


def _mark(methodology: Methodology, model: ModelSummarizer) -> str:
    return f"{model.name} {fingerprint(methodology)}"


def _marked(methodology: Methodology, remark: str) -> Methodology:
    template, _, _ = methodology.made_by.partition(" (")
    return replace(methodology, made_by=f"{template}{remark}")
